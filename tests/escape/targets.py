"""Starts the targets of the attacks, as the attacked user; nothing real is at stake.

    targets.py HOST TARGETS NAME CANARY

Writes what attackers may know into TARGETS, says `ready`, and takes everything down when its
standard input ends. The canary is what they must not learn.
"""

import ctypes
import os
import socket
import subprocess
import sys
import threading

host, targets, name, canary = sys.argv[1:5]
libc = ctypes.CDLL(None, use_errno=True)
text = (canary + "\n").encode()


def write(path, content=text):
    path = os.path.join(host, path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(content)


def serve_streams(listener, answer):
    def loop():
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                answer(connection)

    listener.listen(16)
    threading.Thread(target=loop, daemon=True).start()


def serve_datagrams(listener):
    def loop():
        while True:
            try:
                _, sender = listener.recvfrom(512)
                listener.sendto(text, sender)
            except OSError:
                continue

    threading.Thread(target=loop, daemon=True).start()


def bound(family, kind, place):
    listener = socket.socket(family, kind)
    listener.bind(place)
    return listener


def say(connection):
    connection.sendall(text)


def hand_out(connection):
    directory = os.open(host, os.O_RDONLY)
    socket.send_fds(connection, [b"x"], [directory])
    os.close(directory)


def address():
    """The address of the machine beside its loopback, or that."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
            return probe.getsockname()[0]
        except OSError:
            return "127.0.0.1"


for path in ["secret", "target", "doomed", "home/.netrc"]:
    write(path)
os.chmod(os.path.join(host, "target"), 0o600)
git = os.path.join(host, "repository")
subprocess.run(["git", "init", "-q", git], check=True, env={"PATH": os.environ["PATH"], "HOME": host})
os.makedirs(os.path.join(git, ".git/hooks"), exist_ok=True)
stored = subprocess.run(
    ["git", "-C", git, "hash-object", "-w", "--stdin"], input=text, stdout=subprocess.PIPE, check=True
)
shared = f"/dev/shm/{name}"
with open(os.open(shared, os.O_CREAT | os.O_WRONLY, 0o600), "wb") as file:
    file.write(text)

tcp = bound(socket.AF_INET, socket.SOCK_STREAM, ("0.0.0.0", 0))
tcp6 = bound(socket.AF_INET6, socket.SOCK_STREAM, ("::1", 0))
streams = [tcp, tcp6]
streams += [bound(socket.AF_UNIX, socket.SOCK_STREAM, place) for place in (f"{host}/socket", f"\0{name}")]
for listener in streams:
    serve_streams(listener, say)
serve_streams(bound(socket.AF_UNIX, socket.SOCK_STREAM, f"{host}/doors"), hand_out)
udp = bound(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0))
serve_datagrams(udp)
for place in (f"{host}/datagrams", f"\0{name}-datagrams"):
    serve_datagrams(bound(socket.AF_UNIX, socket.SOCK_DGRAM, place))

number = int.from_bytes(os.urandom(3), "big") + 1
CREATE = 0o1000 | 0o2000 | 0o600
segment = libc.shmget(number, 4096, CREATE)
libc.shmat.restype = ctypes.c_void_p
ctypes.memmove(libc.shmat(segment, None, 0), text, len(text))
queue = libc.msgget(number, CREATE)
libc.msgsnd(queue, ctypes.create_string_buffer(b"\1" + bytes(7) + text, 108), 100, 0)
semaphore = libc.semget(number, 1, CREATE)
libc.mq_open(b"/" + name.encode(), os.O_CREAT | os.O_RDWR, 0o600, None)
ADD_KEY, KEYCTL = 248, 250
key = libc.syscall(ADD_KEY, b"user", name.encode(), text, len(text), -4)
libc.syscall(KEYCTL, 5, key, 0x3F3F0000)

victim = subprocess.Popen(
    [
        sys.executable,
        "-c",
        "import ctypes, os, signal, sys\n"
        "signal.signal(signal.SIGUSR1, lambda *_: None)\n"
        "os.dup2(os.open('secret', os.O_RDONLY), 9, inheritable=True)\n"
        "text = ctypes.create_string_buffer(os.environ['CANARY'].encode(), 64)\n"
        "print(ctypes.addressof(text), flush=True)\n"
        "sys.stdin.read()\n",
        canary,
    ],
    cwd=host,
    env={"CANARY": canary},
    stdin=subprocess.PIPE,
    stdout=subprocess.PIPE,
)
facts = {
    "HOST": host,
    "NAME": name,
    "TCP": tcp.getsockname()[1],
    "TCP6": tcp6.getsockname()[1],
    "UDP": udp.getsockname()[1],
    "ADDRESS": address(),
    "KEY": number,
    "BLOB": stored.stdout.decode().strip(),
    "VICTIM": victim.pid,
    "PLACE": victim.stdout.readline().decode().strip(),
    "HOST_NAME": socket.gethostname(),
}
with open(targets, "w") as file:
    for fact, value in facts.items():
        file.write(f"export {fact}='{value}'\n")
print("ready", flush=True)
sys.stdin.read()

victim.kill()
victim.wait()
libc.shmctl(segment, 0, None)
libc.msgctl(queue, 0, None)
libc.semctl(semaphore, 0, 0)
libc.mq_unlink(b"/" + name.encode())
libc.syscall(KEYCTL, 3, key)
os.unlink(shared)
