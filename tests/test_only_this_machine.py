import socket
import urllib.request

import pytest


def test_an_address_elsewhere_cannot_be_reached():
    with socket.socket() as out, pytest.raises(RuntimeError, match="only this machine"):
        out.connect(("192.0.2.1", 80))


def test_a_name_elsewhere_is_not_even_looked_up():
    with pytest.raises(RuntimeError, match="only this machine"):
        urllib.request.urlopen("http://guardwave.example/")


def test_loopback_can_be_reached():
    with socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_connection(server.getsockname()).close()
