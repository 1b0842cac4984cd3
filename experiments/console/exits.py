"""Turn exceptions into one line on stderr and an exit code.

0 ok, 1 user error or nothing to compare, 2 invalid results remain, 130 interrupted, 141 nobody read the output to its
end.

A defect of the program is reported in one line too, and its traceback goes to a file. With ``--debug`` (or
``COMPOSCOPE_DEBUG=1``) every error shows its traceback.
"""

import errno
import os
import re
import select
import signal
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from types import FrameType
from typing import Any, TextIO

from ...errors import ComposcopeError, InputError
from ...registry import PLUGIN_PREFIX
from ...terminal import how_many, plain, to_stderr

OK, USER_ERROR, INVALID_REMAINS, INTERRUPTED, UNREAD = 0, 1, 2, 130, 141
"""``UNREAD`` is what a shell reports for other Unix tools, which SIGPIPE kills (128 + 13). It is neither 0 nor 1: the
command did not write all of its output, and nobody made a mistake."""
DEBUG = "COMPOSCOPE_DEBUG"
"""Environment variable behind ``--debug``; processes that a command starts inherit it."""
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_CLOSED = (errno.EACCES, errno.EPERM, errno.EROFS)
_FROM_RUST = re.compile(r"\(os error (\d+)\)")
"""How safetensors and tokenizers report a system error: they give its number only in the text."""


def quiet_libraries() -> None:
    """Switch off the telemetry and advertisements of the libraries we use, before they are imported."""
    for name, value in {
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "DO_NOT_TRACK": "1",
        "WANDB_MODE": "disabled",
        "TRANSFORMERS_NO_ADVISORY_WARNINGS": "1",
        "TRANSFORMERS_VERBOSITY": "error",
        "TOKENIZERS_PARALLELISM": "false",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    }.items():
        os.environ.setdefault(name, value)


def guarded(call: Callable[[], Any], resume: Callable[[], str]) -> int:
    """Run a command; turn an error that the user can fix into one line and an exit code.

    ``resume`` gives the command to run again, for interruptions and full disks.
    """
    try:
        return _guarded(call, resume)
    except BrokenPipeError:
        # The reader of our output has closed it (`composcope ls | head`): nothing to report, and no place to report it.
        if not (closed := _unread()):
            raise
        for stream in closed:  # Python writes at its end what is left in their buffers
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        return UNREAD


def _guarded(call: Callable[[], Any], resume: Callable[[], str]) -> int:
    try:
        with _ended_like_ctrl_c():
            code = call()
            sys.stdout.flush()  # a full disk behind stdout raises here
    except KeyboardInterrupt:
        return _interrupted(resume)
    except ComposcopeError as e:
        _trace(e)
        return _fail(str(e), *getattr(e, "__notes__", ()))
    except Exception as e:
        if isinstance(e, BrokenPipeError) and _unread():
            raise  # otherwise the pipe is another one, and its end is an error like others
        if _struck_twice(e):
            _trace(e)
            return _interrupted(resume)
        return _known(e, resume)
    if code == INTERRUPTED:
        return _interrupted(resume)
    return code if isinstance(code, int) else OK


def _struck_twice(e: BaseException | None) -> bool:
    """Whether an error is what a second Ctrl-C leaves in a lock of Python's library ("release unlocked lock")."""
    while isinstance(e, RuntimeError):
        e = e.__context__
    return isinstance(e, KeyboardInterrupt)


def _unread() -> list[TextIO]:
    """Those of stdout and stderr that nobody can read any more: pipes whose other end is closed."""
    if not hasattr(select, "poll"):  # Windows does not tell
        return [sys.stdout]
    found = []
    for stream in (sys.stdout, sys.stderr):
        try:
            poll = select.poll()
            poll.register(stream.fileno(), 0)
        except (OSError, ValueError, AttributeError):  # a stream without a file
            continue
        if any(events & (select.POLLERR | select.POLLHUP) for _, events in poll.poll(0)):
            found.append(stream)
    return found


@contextmanager
def _ended_like_ctrl_c() -> Iterator[None]:
    """Inside this context, SIGTERM (a scheduler's time limit) and a closed terminal act like Ctrl-C."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        handler = signal.getsignal(signal.SIGINT)
        if not callable(handler):
            raise KeyboardInterrupt
        handler(signal.SIGINT, frame)

    here = threading.current_thread() is threading.main_thread()
    # Keep the handlers that nohup or an embedding program has set.
    ours = [n for n in (signal.SIGTERM, signal.SIGHUP) if here and signal.getsignal(n) is signal.SIG_DFL]
    for number in ours:
        signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)


def _known(e: Exception, resume: Callable[[], str]) -> int:
    refused = _refused_by_system(e)
    if refused is not None:
        _trace(e)
        return _fail(_system(refused, resume))
    if type(e).__name__ == "Abort":
        return _interrupted(resume)
    # Usage errors of typer (or of click under older versions of typer): both carry format_message().
    describe = getattr(e, "format_message", None)
    if describe is None:
        return _defect(e)
    message = str(describe()).rstrip(".")
    if type(e).__name__ == "NoArgsIsHelpError":  # no arguments at all; its message is the help
        print(describe())
        return OK
    context = getattr(e, "ctx", None)
    option = getattr(e, "option_name", None)
    if others := _having(option, context):
        more = f" and {how_many(len(others) - 2, 'other')}" if len(others) > 2 else ""
        message = f"No such option: {option} (it is one of {', '.join(others[:2])}{more})"
    return _fail(f"{message}; see `{context.command_path if context is not None else 'composcope'} --help`")


def _having(option: str | None, context: Any) -> list[str]:
    """The other commands that have an option, in quotes; none where no command has it."""
    if option is None or context is None:
        return []
    found, left = [], [(context.find_root().info_name, context.find_root().command)]
    for path, command in left:
        left += [(f"{path} {name}", inner) for name, inner in getattr(command, "commands", {}).items()]
        if any(option in (*param.opts, *param.secondary_opts) for param in command.params):
            found.append(f"`{path}`")
    return found


def _too_small(e: Exception, arguments: Sequence[str]) -> str | None:
    """The message for a number below an option's minimum; None for all other errors."""
    option = getattr(e, "param", None)
    # Typer without click keeps the bounds on the option; with click they are on the option's type.
    least = getattr(option if hasattr(option, "min") else getattr(option, "type", None), "min", None)
    if option is None or least is None:
        return None
    words = [word for a in arguments for word in (a.split("=", 1) if a.startswith("--") else [a])]
    given = [after for word, after in pairwise(words) if word in option.opts]
    return f"{' '.join([option.opts[0], *given[-1:]])}: give a number of at least {least:g}"


def debugging() -> bool:
    """Whether errors show their tracebacks."""
    return os.environ.get(DEBUG, "") not in ("", "0")


def _trace(e: Exception) -> None:
    if debugging():
        print(plain("".join(traceback.format_exception(e))), file=sys.stderr)


def _in_plugin(e: Exception) -> str | None:
    """The last line of a plugin's file that an error came through; None if it came through none."""
    frames = list(traceback.walk_tb(e.__traceback__))
    lines = [
        f"{frame.f_code.co_filename}, line {line}"
        for frame, line in frames
        if str(frame.f_globals.get("__name__", "")).startswith(PLUGIN_PREFIX)
    ]
    return lines[-1] if lines else None


def _defect(e: Exception) -> int:
    """Report an error that no user can cause: one line on stderr, and the traceback in its own file."""
    what = f"unexpected {type(e).__name__}: {e}"
    if (line := _in_plugin(e)) is not None:
        _trace(e)
        return _fail(f"--plugin {line}: {type(e).__name__}: {e}; fix the plugin (--debug shows the traceback)")
    if debugging():
        _trace(e)
        return _fail(f"{what}; this is a defect of composcope")
    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix="composcope-", suffix=".txt", delete=False, encoding="utf-8", errors="backslashreplace"
        ) as f:
            traceback.print_exception(e, file=f)
        where = f"with {f.name}, or see it"
    except OSError:  # there is no place to write the file
        where = "and see it"
    return _fail(f"{what}; this is a defect of composcope: please report it {where} with --debug")


def disk_is_full(error: BaseException | None) -> bool:
    """Whether an error, or an error that caused it, says that no space is left."""
    refused = _refused_by_system(error)
    return refused is not None and refused.errno in _FULL


def _refused_by_system(error: BaseException | None) -> OSError | None:
    """The operating system's error behind an exception, or None; such an error is never a defect of ours."""
    direct = True
    while error is not None:
        if isinstance(error, OSError) and (direct or error.errno in (*_FULL, *_CLOSED)) and error.errno is not None:
            return error
        if found := _FROM_RUST.search(str(error)):
            return OSError(int(found[1]), os.strerror(int(found[1])))
        # An error raised while another one was handled may be our own.
        direct, error = direct and error.__cause__ is not None, error.__cause__ or error.__context__
    return None


def _system(e: OSError, resume: Callable[[], str]) -> str:
    names = [str(name) for name in (e.filename, e.filename2) if name is not None]
    where = f"{' -> '.join(names)}: " if names else ""
    if e.errno in _FULL:
        at = f" at {names[0]}" if names else ""
        return f"no space left on the device{at} ({e.strerror}); free some, then continue with: {resume()}"
    if e.errno in _CLOSED:
        return f"{where}permission denied ({e.strerror}); choose another --out or fix the permissions"
    return f"{where}{e.strerror}; check the disk and the folder, then continue with: {resume()}"


def _interrupted(resume: Callable[[], str]) -> int:
    to_stderr(f"interrupted; all finished work is kept, continue with: {resume()}")
    return INTERRUPTED


def _fail(message: str, *more: str) -> int:
    for line in (f"error: {message}", *more):
        to_stderr(" ".join(plain(line).split()))
    return USER_ERROR


def _name_the_shell(arguments: Sequence[str]) -> None:
    """Make ``--show-completion zsh`` mean zsh; by default, typer detects the shell that called it."""
    options = ("--show-completion", "--install-completion")
    given = any(a in options and not b.startswith("-") for a, b in pairwise(arguments))
    if given or any(a.startswith(tuple(f"{o}=" for o in options)) for a in arguments):
        os.environ["_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION"] = "1"


def run_app(app: Any, args: Sequence[str] | None, resume: Callable[[], str]) -> int:
    """Run a typer app under ``guarded``; ``--debug`` may be anywhere before ``--``."""
    arguments = list(sys.argv[1:] if args is None else args)
    before = arguments[: arguments.index("--")] if "--" in arguments else arguments
    if "--debug" in before:
        os.environ[DEBUG] = "1"
        arguments = [a for a in before if a != "--debug"] + arguments[len(before) :]

    _name_the_shell(before)

    def call() -> Any:
        try:
            return app(arguments, prog_name="composcope", standalone_mode=False)
        except Exception as e:
            if (message := _too_small(e, arguments)) is not None:
                raise InputError(message) from e
            raise
        except SystemExit as e:
            if isinstance(e.__context__, BrokenPipeError):  # typer makes it an exit with code 1
                raise e.__context__ from None
            raise

    return guarded(call, resume)
