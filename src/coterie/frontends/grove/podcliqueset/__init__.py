"""PodCliqueSet front end: the object as users write it, its rules on create and on update, and what a plan needs."""
