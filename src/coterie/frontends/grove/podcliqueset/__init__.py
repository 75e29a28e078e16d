"""The PodCliqueSet front end: the object as users write it, its rules on create and update, and its gangs."""
