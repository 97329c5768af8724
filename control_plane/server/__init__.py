"""Server: the processes of `serve`, and the WSGI application that web workers run."""

__all__ = ["supervisor"]
