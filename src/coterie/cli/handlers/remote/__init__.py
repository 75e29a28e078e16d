"""The work behind the commands that ask a service, all of it done over HTTP."""
