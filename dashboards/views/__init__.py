"""One module per page: parse the request, ask one query or command, render or redirect."""
