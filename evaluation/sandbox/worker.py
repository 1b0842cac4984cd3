"""A process that forks one locked process per program: nothing that a program changes outlives it.

Runs under ``python -P -s -S`` without site packages, environment or working folder, and imports nothing but the
standard library and its neighbor ``program``. The walls around a program, each of which alone keeps it in:

* seccomp: only calls for memory, the clock and the end are allowed, and writing to the one descriptor of the reply.
  No file, socket, process, thread, signal or wait, also not from machine code. This wall is required.
* separate namespaces (user, network, messages, mounts) and an empty folder as root, where the system permits them.
* limits on memory, processor time, clock time and descriptors. Started by root, it becomes nobody.
"""

import ctypes
import importlib.util
import json
import math
import mmap
import os
import resource
import signal
import socket
import sys
from typing import Any

from .program import come_to, preload

NOBODY = 65534
NAMESPACES = {"user": 0x10000000, "net": 0x40000000, "ipc": 0x08000000, "uts": 0x04000000, "mnt": 0x00020000}
ALLOWED = (
    "munmap mremap brk madvise exit exit_group rt_sigreturn restart_syscall clock_gettime clock_getres gettimeofday "
    "time getrandom getrusage times sched_yield getpid gettid"
).split()
_FUTEX_COMMAND, _FUTEX_WAKE = 0x7F, 1
_ENDING = (signal.SIGINT, signal.SIGPIPE, signal.SIGPROF, signal.SIGALRM)
_OUT_OF_MEMORY = b'{"reason": "memory", "detail": "MemoryError"}'


def load_filter(path: str) -> Any:
    """The seccomp filter, not yet in force. ``path`` is the file of pyseccomp, as there are no site packages here."""
    spec = importlib.util.spec_from_file_location("pyseccomp", path)
    assert spec is not None and spec.loader is not None
    seccomp = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(seccomp)
    rules = seccomp.SyscallFilter(seccomp.ERRNO(1))
    for name in ALLOWED:
        if seccomp.resolve_syscall(seccomp.system_arch(), name) != -1:
            rules.add_rule(seccomp.ALLOW, name)
    data_only = seccomp.Arg(2, seccomp.MASKED_EQ, mmap.PROT_EXEC, 0)
    anonymous = seccomp.Arg(3, seccomp.MASKED_EQ, mmap.MAP_ANONYMOUS, mmap.MAP_ANONYMOUS)
    rules.add_rule(seccomp.ALLOW, "mmap", data_only, anonymous)
    rules.add_rule(seccomp.ALLOW, "mprotect", data_only)
    # a lock may be released, but waiting for one is not allowed
    rules.add_rule(seccomp.ALLOW, "futex", seccomp.Arg(1, seccomp.MASKED_EQ, _FUTEX_COMMAND, _FUTEX_WAKE))
    rules.add_rule(seccomp.ALLOW, "write", seccomp.Arg(0, seccomp.EQ, 0))
    return rules


def wall_in(root: str) -> list[str]:
    """Leave the namespaces, the file tree and root's rights as far as the system permits; returns what was left."""
    libc = ctypes.CDLL(None, use_errno=True)
    was_root = os.geteuid() == 0
    wanted = {k: v for k, v in NAMESPACES.items() if not (was_root and k == "user")}
    done = []
    if libc.unshare(sum(wanted.values())) == 0:
        done += [f"{name} namespace" for name in wanted]
    try:
        os.chroot(root)
        done.append("empty root")
    except OSError:
        pass
    os.chdir("/")
    if was_root:
        try:
            os.setgroups([])
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
            done.append("user nobody")
        except OSError:
            pass
    return done


def _limit(what: int, value: int) -> None:
    hard = resource.getrlimit(what)[1]
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(what, (value, value))


def lock(rules: Any, limits: dict[str, Any]) -> None:
    """Bound what this process uses, then forbid it everything but computing; there is no way back."""
    # no handler can be set from here on, so these two signals end the process
    signal.setitimer(signal.ITIMER_PROF, limits["seconds"])
    signal.setitimer(signal.ITIMER_REAL, limits["wall_seconds"])
    _limit(resource.RLIMIT_CPU, math.ceil(limits["seconds"]) + 1)
    _limit(resource.RLIMIT_AS, limits["memory_mb"] << 20)
    _limit(resource.RLIMIT_FSIZE, 0)
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_NPROC, 0)
    _limit(resource.RLIMIT_NOFILE, 1)
    rules.load()


def work(connection: int, rules: Any) -> None:
    """Read one request, lock this process, run the program and write what it came to; does not return."""
    try:
        os.dup2(connection, 0)
        os.closerange(1, 256)
        received = bytearray()
        while block := os.read(0, 1 << 16):
            received += block
        request = json.loads(received)
        lock(rules, request["limits"])
        try:
            reply = json.dumps(come_to(request)).encode()
        except MemoryError:
            reply = _OUT_OF_MEMORY
        except BaseException as e:  # the program left things in a state in which nothing can be told
            reply = json.dumps({"reason": "crashed", "detail": type(e).__name__}).encode()
        while reply:
            reply = reply[os.write(0, reply) :]
    finally:
        os._exit(0)


def serve(seccomp: str, root: str) -> None:
    """Fork a locked process for each connection that arrives on descriptor 0, until that is closed."""
    control = socket.socket(fileno=0)
    preload()
    rules = load_filter(seccomp)
    walls = json.dumps(wall_in(root)).encode()
    for number in _ENDING:
        signal.signal(number, signal.SIG_DFL)
    sys.argv[:], sys.path[:] = ["program.py"], []
    control.sendall(walls + b"\n")
    while True:
        _, received, _, _ = socket.recv_fds(control, 1, 1)
        if not received:
            return
        worker = os.fork()
        if worker == 0:
            work(received[0], rules)
        os.close(received[0])
        control.recv(1)  # the reply was read, or the reader is gone
        os.kill(worker, signal.SIGKILL)
        status = os.waitpid(worker, 0)[1]
        control.sendall(bytes([os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0]))
