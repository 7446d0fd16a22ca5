"""Attacks on the memory and the descriptors of a process of the host.

Prints what it could read; an exception is an attack that failed.
"""

import ctypes
import os
import sys

victim = int(os.environ["VICTIM"])
place = int(os.environ["PLACE"])
libc = ctypes.CDLL(None, use_errno=True)


def done(result):
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


class Vector(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]


def by_file():
    with open(f"/proc/{victim}/mem", "rb") as memory:
        memory.seek(place)
        return memory.read(64).decode(errors="replace")


def by_call():
    text = ctypes.create_string_buffer(64)
    ours = Vector(ctypes.addressof(text), 64)
    theirs = Vector(place, 64)
    done(libc.process_vm_readv(victim, ctypes.byref(ours), 1, ctypes.byref(theirs), 1, 0))
    return text.raw.decode(errors="replace")


def write_by_call():
    text = ctypes.create_string_buffer(b"x", 1)
    ours = Vector(ctypes.addressof(text), 1)
    theirs = Vector(place + 60, 1)
    return done(libc.process_vm_writev(victim, ctypes.byref(ours), 1, ctypes.byref(theirs), 1, 0))


def steal_descriptor():
    handle = done(libc.syscall(434, victim, 0))
    stolen = done(libc.syscall(438, handle, 9, 0))
    return os.pread(stolen, 4096, 0).decode()


def signal_by_handle():
    handle = done(libc.syscall(434, victim, 0))
    return done(libc.syscall(424, handle, 0, None, 0))


def limit():
    """Takes away what the process may use; here nothing is changed."""
    import resource

    return resource.prlimit(victim, resource.RLIMIT_NOFILE)


def pin():
    """Chooses the processors that the process may use."""
    os.sched_setaffinity(victim, os.sched_getaffinity(victim))


def compare():
    return done(libc.syscall(312, victim, victim, 0, 9, 9))


def control():
    """Shows that this program runs at all."""


print(globals()[sys.argv[1]]())
