"""Front ends: a user's text in, gangs and pools out, every fault with its file, line and column.

`template` renders workflow templates in a separate process; the other packages define the content of each kind of file,
on top of `coterie.document`. No file is opened here and no network is used: callers pass bytes.
"""
