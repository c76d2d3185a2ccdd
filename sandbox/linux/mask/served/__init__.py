"""Granted names, served read-write from the host: the part of the mask that is a pass-through file system.

Invariants:
1. The host is reached from descriptors alone, one name at a time, and no link is followed.
2. A name no grant covers never appears on the host: what is made beside a granted name lives in the staging area.
3. What the host has and no grant covers does not exist here, whatever is done beside it.
"""
