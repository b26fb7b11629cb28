"""The same work in the browser, on this machine only: `addresses` serves a folder of tables and runs.

The server stores nothing: tables and runs are files of the folder, and the choices for a table are in the address.
"""
