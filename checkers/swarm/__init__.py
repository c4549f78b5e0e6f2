"""Many bounded depth-first searches, each in its own order: for what is too large to search.

`dive` makes one search and gives what it saw as plain data, so that any executor can run it;
`check` makes one verdict of many. A swarm finds violations; it never proves.
"""
