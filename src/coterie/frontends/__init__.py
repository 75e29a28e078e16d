"""Front ends: a user's text in, gangs and pools out, every fault with its file, line and column.

`text` reads YAML and remembers where everything stood, `template` renders workflow templates out of process,
`schema` turns what a pydantic model finds wrong into our own words. The rest says what each kind of file may hold.
No file is opened here and no network used: callers bring bytes.
"""
