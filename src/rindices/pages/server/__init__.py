"""The same work in the browser, on this machine only: `addresses` serves a folder of tables and runs.

Nothing is kept here: tables and runs are files of the folder, and what was chosen about a table is in the address.
"""
