//! Memory that no process has mapped counts against the limit as well.
//!
//! Each attack tries to keep 640 MB or more where 128 MiB are granted, and would keep it for
//! eight seconds.

use std::time::{Duration, Instant};

use provost_sandbox::{How, Profile};

use crate::stage::{Stage, for_each_user};

/// What every attack begins with; `hold` keeps all it took, and then ends it.
const BEGIN: &str = "import ctypes, fcntl, mmap, os, socket, sys, time\n\
    libc = ctypes.CDLL(None, use_errno=True)\n\
    libc.shmat.restype = ctypes.c_void_p\n\
    MIB = 1 << 20\nCHUNK = b'x' * MIB\n\
    def hold(): print('held', flush=True); time.sleep(8)\n";

fn limited(stage: &Stage) -> Profile {
    let mut profile = stage.profile();
    profile.limits.memory_bytes = 128 << 20;
    profile.limits.scratch_bytes = 128 << 20;
    profile
}

/// Asserts that the attack was ended, or failed before it had all it wanted.
fn fails(stage: &Stage, name: &str, lines: &str) {
    stage.write("attack.py", &format!("{BEGIN}{lines}hold()\n"));
    let since = Instant::now();
    let answer = stage.run(&limited(stage), &["/usr/bin/python3", "attack.py"]);
    let stopped = match answer.how() {
        How::MemoryLimit => true,
        How::Exited(code) => code != 0 && !answer.stdout.contains("held"),
        _ => false,
    };
    assert!(stopped, "{name}: {answer:?}");
    assert!(
        since.elapsed() < Duration::from_secs(7),
        "{name}: {answer:?}"
    );
}

const MEMFDS: &str = "files = []\n\
    for _ in range(10):\n\
    \x20   file = os.memfd_create('x'); files.append(file)\n\
    \x20   for _ in range(64): os.write(file, CHUNK)\n";

#[test]
fn files_in_memory_without_a_name_count() {
    for_each_user(|stage| {
        fails(stage, "memfds", MEMFDS);
        // Mapped, but hardly.
        let mapped = MEMFDS.replace(
            "x'); files",
            "x'); os.ftruncate(file, MIB); files.append(mmap.mmap(file, 4096)); files",
        );
        fails(stage, "mapped memfds", &mapped);
    });
}

#[test]
fn shared_memory_counts_whichever_process_has_it_mapped() {
    for_each_user(|stage| {
        let dropped = "maps = []\n\
            for _ in range(10):\n\
            \x20   area = mmap.mmap(-1, 64 * MIB, mmap.MAP_SHARED | mmap.MAP_ANONYMOUS)\n\
            \x20   for at in range(0, 64 * MIB, 4096): area[at] = 1\n\
            \x20   area.madvise(mmap.MADV_DONTNEED); maps.append(area)\n";
        fails(stage, "shared pages that are not in use", dropped);
        let segments = "for _ in range(10):\n\
            \x20   segment = libc.shmget(0, 64 * MIB, 0o1600)\n\
            \x20   if segment < 0: raise OSError(ctypes.get_errno(), 'shmget')\n\
            \x20   at = libc.shmat(segment, None, 0)\n\
            \x20   ctypes.memset(at, 1, 64 * MIB); libc.shmdt(ctypes.c_void_p(at))\n";
        fails(stage, "System V memory", segments);
    });
}

#[test]
fn what_waits_in_sockets_counts() {
    for_each_user(|stage| {
        let fill = "def fill(one, most):\n\
            \x20   sent = 0\n\
            \x20   one.setblocking(False)\n\
            \x20   try:\n\
            \x20       while sent < most: sent += one.send(CHUNK[:65536])\n\
            \x20   except BlockingIOError: pass\n\
            \x20   return sent\n\
            total, kept = 0, []\n";
        let unix = format!(
            "{fill}while total < 1200 * MIB and len(kept) < 6000:\n\
             \x20   pair = socket.socketpair(); kept.append(pair)\n\
             \x20   for one in pair: total += fill(one, 4 * MIB)\n"
        );
        fails(stage, "pairs", &unix);
        let large = unix.replace(
            "kept.append(pair)\n",
            "kept.append(pair)\n    for one in pair: one.setsockopt(socket.SOL_SOCKET, \
             socket.SO_SNDBUF, 8 * MIB)\n",
        );
        fails(stage, "pairs with large buffers", &large);
        let passed = format!(
            "{fill}way = socket.socketpair()\n\
             while total < 1200 * MIB and len(kept) < 200:\n\
             \x20   pair = socket.socketpair(); total += fill(pair[0], 4 * MIB) + fill(pair[1], 4 * MIB)\n\
             \x20   socket.send_fds(way[0], [b'x'], [one.fileno() for one in pair])\n\
             \x20   for one in pair: one.close()\n\
             \x20   kept.append(None)\n\
             \x20   if len(kept) % 50 == 0: way = (way, socket.socketpair())[1]; kept[0] = (kept[0], way)\n"
        );
        fails(
            stage,
            "pairs on their way",
            &passed.replace("len(kept) < 200", "len(kept) < 2000"),
        );
        let tcp = format!(
            "{fill}server = socket.create_server(('127.0.0.1', 0))\n\
             while total < 1200 * MIB and len(kept) < 400:\n\
             \x20   one = socket.create_connection(server.getsockname()); kept.append((one, server.accept()[0]))\n\
             \x20   total += fill(one, 16 * MIB)\n"
        );
        fails(stage, "connections on the loopback", &tcp);
    });
}

#[test]
fn files_in_memory_on_their_way_through_a_socket_count() {
    for_each_user(|stage| {
        let lines = "way = socket.socketpair()\n\
            for _ in range(10):\n\
            \x20   file = os.memfd_create('x')\n\
            \x20   for _ in range(64): os.write(file, CHUNK)\n\
            \x20   socket.send_fds(way[0], [b'x'], [file]); os.close(file)\n";
        fails(stage, "memfds on their way", lines);
    });
}

#[test]
fn queues_semaphores_and_pipes_count() {
    for_each_user(|stage| {
        let messages = "for number in range(32000):\n\
            \x20   queue = libc.msgget(0, 0o1600)\n\
            \x20   if queue < 0: raise OSError(ctypes.get_errno(), 'msgget')\n\
            \x20   text = ctypes.create_string_buffer(8 + 8192); text[0] = b'\\x01'\n\
            \x20   for _ in range(2): libc.msgsnd(queue, text, 8192, 0o4000)\n";
        fails(stage, "messages", messages);
        let semaphores = "for _ in range(200):\n\
            \x20   if libc.semget(0, 32000, 0o1600) < 0: raise OSError(ctypes.get_errno(), 'semget')\n";
        fails(stage, "semaphores", semaphores);
        let pinned = "a, b = os.pipe()\n\
            class V(ctypes.Structure): _fields_ = [('b', ctypes.c_void_p), ('l', ctypes.c_size_t)]\n\
            text = ctypes.create_string_buffer(4096)\n\
            if libc.vmsplice(b, ctypes.byref(V(ctypes.addressof(text), 4096)), 1, 0) < 0:\n\
            \x20   raise OSError(ctypes.get_errno(), 'vmsplice')\n";
        fails(stage, "pages in pipes", pinned);
    });
}

#[test]
fn what_stays_within_the_limit_is_left_alone() {
    for_each_user(|stage| {
        let lines = "file = os.memfd_create('x')\n\
            for _ in range(40): os.write(file, CHUNK)\n\
            area = mmap.mmap(file, 40 * MIB); total = sum(area[at] for at in range(0, 40 * MIB, 4096))\n\
            pairs = [socket.socketpair() for _ in range(100)]\n\
            for one, _ in pairs: one.sendall(CHUNK[:1000])\n\
            segment = libc.shmget(0, MIB, 0o1600); assert segment >= 0 and libc.shmat(segment, None, 0)\n\
            assert libc.msgget(0, 0o1600) >= 0 and libc.semget(0, 8, 0o1600) >= 0\n\
            if os.fork() == 0: time.sleep(1.5); os._exit(0)\n\
            time.sleep(1); os.wait(); print('done'); sys.exit(0)\n";
        stage.write("work.py", &format!("{BEGIN}{lines}"));
        let answer = stage.run(&limited(stage), &["/usr/bin/python3", "work.py"]);
        assert_eq!(
            (answer.how(), &*answer.stdout),
            (How::Exited(0), "done\n"),
            "{answer:?}"
        );
    });
}
