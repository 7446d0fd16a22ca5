"""Attacks on sockets, shared memory and keys of the host.

Prints what it could read; an exception is an attack that failed.
"""

import ctypes
import os
import socket
import struct
import sys

host = os.environ["HOST"]
libc = ctypes.CDLL(None, use_errno=True)


def done(result):
    """What the kernel answered, or an exception if it refused."""
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def said(connection):
    connection.settimeout(1)
    return connection.recv(4096).decode()


def asked(connection, place, question=b"x"):
    connection.settimeout(1)
    connection.sendto(question, place)
    return connection.recv(4096).decode(errors="replace")


def tcp():
    return said(socket.create_connection(("127.0.0.1", int(os.environ["TCP"])), 1))


def tcp6():
    return said(socket.create_connection(("::1", int(os.environ["TCP6"])), 1))


def udp():
    return asked(socket.socket(socket.AF_INET, socket.SOCK_DGRAM), ("127.0.0.1", int(os.environ["UDP"])))


def resolve():
    question = b"\x70\x76\x01\0\0\x01\0\0\0\0\0\0\x06canary\x04test\0\0\x10\0\x01"
    place = ("127.0.0.1", int(os.environ["UDP"]))
    return asked(socket.socket(socket.AF_INET, socket.SOCK_DGRAM), place, question)


def every_interface():
    return said(socket.create_connection((os.environ["ADDRESS"], int(os.environ["TCP"])), 1))


def stream_by_path():
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(host + "/socket")
    return said(connection)


def stream_by_link():
    """By a descriptor of the directory, against restrictions that check names."""
    os.chdir(host)
    connection = socket.socket(socket.AF_UNIX)
    connection.connect("socket")
    return said(connection)


def datagram_by_path():
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    connection.bind("")
    return asked(connection, host + "/datagrams")


def datagram_pair():
    """One end of a pair, which needs no call that makes a socket alone."""
    connection, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    connection.bind("")
    connection.connect(host + "/datagrams")
    connection.send(b"x")
    return said(connection)


def stream_by_name():
    connection = socket.socket(socket.AF_UNIX)
    connection.connect("\0" + os.environ["NAME"])
    return said(connection)


def datagram_by_name():
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    connection.bind("")
    return asked(connection, "\0" + os.environ["NAME"] + "-datagrams")


def passed_descriptor():
    """The host's server sends an open directory, from which everything can be opened."""
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(1)
    connection.connect(host + "/doors")
    _, descriptors, _, _ = socket.recv_fds(connection, 16, 1)
    return os.read(os.open("secret", os.O_RDONLY, dir_fd=descriptors[0]), 4096).decode()


def packets():
    return str(socket.socket(socket.AF_PACKET, socket.SOCK_RAW).fileno())


def raw_internet():
    return str(socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP).fileno())


def virtual_machine():
    return str(socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM).fileno())


def segment():
    """A System V segment of the host."""
    number = done(libc.shmget(int(os.environ["KEY"]), 0, 0))
    libc.shmat.restype = ctypes.c_void_p
    return ctypes.string_at(libc.shmat(number, None, 0o10000)).decode()


def queue():
    """A System V queue of the host."""
    number = done(libc.msgget(int(os.environ["KEY"]), 0))
    message = ctypes.create_string_buffer(256)
    done(libc.msgrcv(number, message, 200, 0, 0o4000))
    done(libc.msgsnd(number, message, 100, 0o4000))
    return message.raw[8:].decode(errors="replace")


def semaphore():
    return str(done(libc.semget(int(os.environ["KEY"]), 1, 0)))


def posix_queue():
    return str(done(libc.mq_open(b"/" + os.environ["NAME"].encode(), os.O_RDWR)))


def key():
    """A key of the host's user, which no namespace of files or processes hides."""
    user = ctypes.c_int(-4)
    name = os.environ["NAME"].encode()
    found = done(libc.syscall(250, 10, user, b"user", name, 0))
    text = ctypes.create_string_buffer(256)
    done(libc.syscall(250, 11, found, text, 200))
    return text.value.decode()


def watch():
    """Watches files of the host."""
    return str(done(libc.inotify_add_watch(libc.inotify_init(), host.encode(), 0x100)))


def control():
    """Shows that this program runs at all."""


print(globals()[sys.argv[1]]())
