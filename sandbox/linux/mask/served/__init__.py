"""Granted names, served from the host for reading and writing: the part of the mask that passes requests through.

Invariants:
1. The host is reached from descriptors alone, one name at a time, and no link is followed.
2. A name that no grant covers never appears on the host: names made beside a granted one live in the staging area.
3. A file of the host's that no grant covers does not exist here, whatever is done beside it.
"""
