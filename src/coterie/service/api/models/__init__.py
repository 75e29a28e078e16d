"""What requests hold and what answers hold, field by field: the published schema is made of these."""
