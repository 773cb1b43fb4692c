"""Enforcement of a sandbox policy by a bubblewrap command line in front of a command's argv.

`mounts.py` has the mounts, `places.py` the hidden places, `links.py` the check that no command has
redirected a root, `probe.py` the probe of bubblewrap. Source: session-protocol "SandboxPolicy
(object)".

| policy | files | network |
|---|---|---|
| dangerFullAccess | as the server | as the server |
| externalSandbox | as the server; the client's own sandbox confines it | none unless `enabled` |
| readOnly | all readable, none writable | none |
| workspaceWrite | all readable; the workspace and the roots writable | none unless networkAccess |

Under readOnly and workspaceWrite, also:

- the secrets in the user's home (`places.SECRETS`), also if the environment moves them, cannot be
  read, nor the agent's own home except its skills; the `.git` of a root is read-only, and so is the
  server's own code in a root;
- a command starts only after the warden has checked that the mounts are those of the plan;
- if several servers share a process, the folders of the others are hidden (`places.ENCLOSURE`);
- sockets of programs outside (in /run; of X and tmux; those that the environment names) are hidden,
  and the variables that name them are removed;
- processes outside are neither visible nor reachable; there are no capabilities, not even of root;
- the kernel's keyrings, and sockets that no network namespace confines, are refused (`seccomp.py`);
- TMPDIR is a private folder in memory that lasts as long as the command; /tmp is read-only, so
  that a program that writes there gets an error.

If a policy cannot be enforced (`SandboxUnavailable`), the command does not run.

Patches and images, which the server itself writes and reads, follow the same plan (`view`).

Not protected from commands, though from patches: a `.git`, or a place of secrets, that did not
exist when the command started; a `.git` deeper inside a root; a root's `.git` that is a link, which
can be replaced. Not hidden are sockets in other places and, if the network is open, those in the
abstract namespace.
"""

import os
import pwd
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from harness.protocol.wire.settings import (
    DangerFullAccess,
    ExternalSandbox,
    ReadOnly,
    SandboxPolicy,
    WorkspaceWrite,
)
from reference_server.sandbox.links import KnownRoots, follow
from reference_server.sandbox.mounts import Kind, Plan, Refused, resolve_links
from reference_server.sandbox.places import (
    ENCLOSURE,
    OPEN_IN_ENCLOSURE,
    is_inside,
    own_code,
    places_of_sockets,
    secrets_moved_by,
    secrets_of,
    settings_folder,
    socket_within,
    sockets_named_by,
    visible_in_run,
)
from reference_server.sandbox.probe import Probe, SandboxUnavailable
from reference_server.sandbox.process import Command, Finished
from reference_server.sandbox.seccomp import program as seccomp_program

MOUNT_CHECK = (
    "/bin/sh",
    "-c",
    "echo >&9 && IFS= read -r said <&9;"
    ' [ "$said" = . ] || { echo "bwrap: ${said:-nobody looked at the mounts}"; exit 1; };'
    ' exec "$@" 9>&-',
    "sh",
)
"""Words before the command inside the sandbox: wait until the warden has checked the mounts."""
PRIVATE_TMP = "/dev/shm"
"""TMPDIR of commands: bubblewrap's own /dev is in memory and ends with the command."""
_OUTSIDE_VARIABLES = frozenset(
    {"SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS", "DOCKER_HOST", "XDG_RUNTIME_DIR", "TMUX", "STY"}
)
_ALWAYS = ("--die-with-parent", "--cap-drop", "ALL")
_NAMESPACES = ("--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try")
_NO_NETWORK = "--unshare-net"
_FILTER_AT = 200
"""Descriptor from which bubblewrap reads the program of `seccomp.py`."""
_DENIED = re.compile(r"Read-only file system|Operation not permitted|\b(?:EROFS|EPERM)\b")
_FORBIDDEN = re.compile(r"Permission denied|\bEACCES\b")
_NO_WAY_OUT = re.compile(
    r"Network is unreachable|Could not resolve host|Temporary failure in name resolution"
    r"|\b(?:ENETUNREACH|EAI_AGAIN)\b"
)
_NOT_EXECUTABLE = 126


@dataclass(frozen=True, slots=True)
class Confinement:
    """Confinement of a command: the `wrapper`, `env`, `inputs` and `mounts` of its `Command`.

    `files` and `network`: whether this server restricts them. `notes`: parts of the policy that
    have no effect, for the log.
    """

    wrapper: tuple[str, ...]
    env: Mapping[str, str]
    inputs: Mapping[int, bytes] = field(default_factory=dict[int, bytes])
    files: bool = False
    network: bool = False
    notes: tuple[str, ...] = field(default=())
    mounts: tuple[tuple[str, str], ...] = ()

    def command(
        self, argv: tuple[str, ...], cwd: str, *, tty: bool, timeout: float | None
    ) -> Command:
        """Return a command that is confined so; `timeout` is in seconds."""
        return Command(
            argv,
            cwd,
            env=self.env,
            tty=tty,
            timeout=timeout,
            wrapper=self.wrapper,
            inputs=self.inputs,
            mounts=self.mounts,
        )


class Sandbox:
    """Sandbox of one server: `home` is the agent's own, `user_home` the user's.

    `environment` is the server's: it names sockets of other programs, which are hidden although
    commands do not get the variables.
    """

    def __init__(
        self,
        home: Path,
        user_home: Path | None = None,
        *,
        environment: Mapping[str, str] | None = None,
        probe: Probe | None = None,
        root: bool | None = None,
    ) -> None:
        self._root = os.geteuid() == 0 if root is None else root
        self._home = os.path.realpath(home)
        homes = [user_home] if user_home else [Path.home(), _home_of_account()]
        # In order and without duplicates: mostly they are the same folder.
        self._user_homes = list(dict.fromkeys(str(one) for one in homes if one is not None))
        self._probe = probe or Probe()
        self._environment = os.environ if environment is None else environment
        self._filter = _filter()
        # Nothing is removed from these sets, even if a command removes the link that led there.
        self._secrets: set[str] = set()
        self._sockets: set[str] = set()
        self._known = KnownRoots()
        self._code = sorted(own_code())
        self._home_links = self._links_to_home(home)

    async def confine(
        self,
        policy: SandboxPolicy,
        *,
        workspace: str,
        cwd: str,
        env: Mapping[str, str],
        tty: bool = False,
        network: bool = False,
    ) -> Confinement:
        """Return the confinement of a command in `cwd` under a policy. Raises SandboxUnavailable.

        `workspace` is the thread's working directory, the first root of workspaceWrite. It must
        never be a folder that the model chose; `cwd` may be one. `network`: the client lets this
        command reach the network even if the policy does not.
        """
        match policy:
            case DangerFullAccess():
                return Confinement((), env)
            case ExternalSandbox():
                return Confinement((), env) if network else await self._external(policy, env, tty)
            case ReadOnly():
                return await self._confine_to((), network, workspace, cwd, env, tty)
            case WorkspaceWrite():
                roots = (workspace, *policy.writable_roots)
                reach = network or policy.network_access
                return await self._confine_to(roots, reach, workspace, cwd, env, tty)

    def view(self, policy: SandboxPolicy, *, workspace: str) -> Plan | None:
        """Return a policy's plan, to check the server's own access for patches and images.

        None if the policy does not restrict files. Raises Refused for an unusable root, ValueError.
        """
        match policy:
            case DangerFullAccess() | ExternalSandbox():
                return None
            case ReadOnly():
                plan = self._plan(())
            case WorkspaceWrite():
                plan = self._plan((workspace, *policy.writable_roots))
        _make_visible(plan, resolve_links(workspace))
        return plan

    async def _external(
        self, policy: ExternalSandbox, env: Mapping[str, str], tty: bool
    ) -> Confinement:
        # The specification shows only this value, so no other opens the network.
        if policy.network_access == "enabled":
            return Confinement((), env)
        options = (
            *_ALWAYS,
            _NO_NETWORK,
            *_session(tty),
            *self._filter_options,
            "--dev-bind",
            "/",
            "/",
        )
        program = await self._probe.require(*options, inputs=self._filter)
        return Confinement((program, *options, "--"), env, self._filter, network=True)

    @property
    def _filter_options(self) -> tuple[str, ...]:
        return ("--seccomp", str(_FILTER_AT)) if self._filter else ()

    async def _confine_to(
        self,
        roots: tuple[str, ...],
        network: bool,
        workspace: str,
        cwd: str,
        env: Mapping[str, str],
        tty: bool,
    ) -> Confinement:
        try:
            plan = self._plan(roots, env)
            _make_visible(plan, resolve_links(workspace))
            _check_cwd(plan, cwd)
        except (Refused, ValueError) as error:
            raise SandboxUnavailable(f"no sandbox: {error}") from error
        reach = () if network else (_NO_NETWORK,)
        options = (*_ALWAYS, *_NAMESPACES, *reach, *_session(tty), *self._filter_options)
        untried = (*options, *Plan().arguments(root=self._root))
        program = await self._probe.require(*untried, inputs=self._filter)
        if any(is_inside(program, root) for root in plan.roots):
            raise SandboxUnavailable(f"no sandbox: {program} lies in a root that is writable")
        inner = {name: value for name, value in env.items() if name not in _OUTSIDE_VARIABLES}
        return Confinement(
            (program, *options, *plan.arguments(root=self._root), "--", *MOUNT_CHECK),
            {**inner, "TMPDIR": PRIVATE_TMP},
            self._filter,
            files=True,
            network=not network,
            notes=tuple(plan.notes),
            mounts=plan.expected_mounts(),
        )

    def _plan(self, roots: tuple[str, ...], env: Mapping[str, str] | None = None) -> Plan:
        """Make the plan of a policy with these roots. Raises Refused, ValueError."""
        for home in self._user_homes:
            self._secrets |= secrets_of(home)
        self._secrets |= secrets_moved_by(self._environment, self._user_homes)
        for environment in (self._environment, env or {}):
            self._sockets |= set(sockets_named_by(environment))
        plan = Plan()
        plan.allow(roots, (*self._secrets, self._home), self._known.check)
        for root in plan.roots:
            if self._of_others(root):
                raise Refused(f"the root {root} belongs to another server of this process")
        self._known.add_writable(plan.roots)
        for link in self._home_links:
            if any(is_inside(link, root) for root in plan.roots):
                raise Refused(
                    f"the agent's home is found through the link {link}, which lies in a root that "
                    f"is writable; set AGENT_HOME to {self._home}"
                )
        for path in self._code if plan.roots else ():
            plan.protect_resolved(path, Kind.READABLE)
        self._hide(plan)
        return plan

    def _hide(self, plan: Plan) -> None:
        places = list(places_of_sockets())
        for root in plan.roots:
            _refuse_sockets(root, places)
        for path in places:
            plan.add(path, Kind.EMPTY)
        for path in self._sockets:
            if not any(is_inside(path, place) for place in places):
                plan.protect(path, Kind.HIDDEN)
        for path in visible_in_run():
            plan.add(path, Kind.READABLE, resolve_links(path))
        for path in self._secrets:
            plan.protect_resolved(path, Kind.HIDDEN)
        self._enclose(plan)
        plan.protect(self._home, Kind.SEARCHABLE)
        skills = os.path.join(self._home, "skills")
        if os.path.isdir(skills) and os.path.realpath(skills) == skills:
            plan.add(skills, Kind.READABLE)

    def _of_others(self, path: str) -> bool:
        enclosure = self._environment.get(ENCLOSURE)
        return (
            enclosure is not None
            and is_inside(path, enclosure)
            and not any(is_inside(path, own) for own in self._own_in_enclosure())
        )

    def _enclose(self, plan: Plan) -> None:
        enclosure = self._environment.get(ENCLOSURE)
        if enclosure is None:
            return
        plan.protect(enclosure, Kind.SEARCHABLE)
        for folder in self._own_in_enclosure():
            if folder not in plan.roots:
                # A root may be a folder around the enclosure.
                is_in_root = any(is_inside(folder, root) for root in plan.roots)
                plan.add(folder, Kind.WRITABLE if is_in_root else Kind.READABLE)

    def _own_in_enclosure(self) -> list[str]:
        return self._environment.get(OPEN_IN_ENCLOSURE, "").split(os.pathsep)

    def _links_to_home(self, home: Path) -> list[str]:
        """Return the links in the path to the agent's home, which the next server will follow."""
        configured = self._environment.get("AGENT_HOME")
        usual = (
            [configured]
            if configured
            else [os.path.join(one, settings_folder(self._environment)) for one in self._user_homes]
        )
        paths = (os.path.abspath(one) for one in (str(home), *usual))
        followed = [follow(way) for way in paths]
        return [link for target, links in followed if target == self._home for link in links]


def _check_cwd(plan: Plan, cwd: str) -> None:
    """Raise Refused if the working directory is hidden from commands."""
    hider = plan.hides(resolve_links(cwd))
    if hider is not None:
        raise Refused(f"the folder {cwd} lies in {hider}, which commands cannot see")


def _make_visible(plan: Plan, workspace: str) -> None:
    """Make the client's workspace visible if it is in a hidden place of sockets.

    The place itself stays hidden. Raises Refused if programs outside listen in the workspace. Never
    call it with a folder that the model chose: it could open any folder in the place.
    """
    places = list(places_of_sockets())
    if plan.hides(workspace) in places and workspace not in places and os.path.isdir(workspace):
        _refuse_sockets(workspace, places)
        plan.add(workspace, Kind.READABLE)


def _refuse_sockets(folder: str, places: Sequence[str]) -> None:
    """Raise Refused if a folder that would become visible has sockets of programs outside."""
    for place in places:
        if is_inside(folder, place):
            socket = place if folder == place else socket_within(folder)
            if socket is not None:
                raise Refused(
                    f"the folder {folder} is one in which programs outside listen ({socket}); work "
                    "in another"
                )


def _filter() -> dict[int, bytes]:
    """Return the program of `seccomp.py` by its descriptor; {} on other architectures."""
    filter_program = seccomp_program()
    return {_FILTER_AT: filter_program} if filter_program else {}


def _session(tty: bool) -> tuple[str, ...]:
    # A new session cannot type into the server's terminal. With `tty` the command already has its
    # own session and terminal, and must keep them.
    return () if tty else ("--new-session",)


def _home_of_account() -> Path | None:
    try:
        return Path(pwd.getpwuid(os.getuid()).pw_dir)
    except KeyError:
        return None


def looks_denied(
    finished: Finished, confinement: Confinement, *, forbidden_files: bool = True
) -> bool:
    """Return whether the sandbox seems to have stopped a command, so that it may work outside.

    A guess from its output: it failed, was not ended by the server, and printed the kernel's
    message for a read-only file system, a forbidden file or operation, or, without network, for an
    unreachable network or an unknown host. Not counted: status 126 (a file that is not executable
    is not so outside either), "Connection refused" (which a server that is down gives too),
    messages in other languages than English; without `forbidden_files`, a forbidden file.
    """
    if not finished.exit_code or finished.timed_out or finished.was_stopped:
        return False
    if finished.exit_code == _NOT_EXECUTABLE:
        return False
    patterns = (_DENIED, _FORBIDDEN) if forbidden_files else (_DENIED,)
    denied = confinement.files and any(one.search(finished.output) for one in patterns)
    cut_off = confinement.network and _NO_WAY_OUT.search(finished.output)
    return bool(denied or cut_off)


def sandbox_failure(finished: Finished, confinement: Confinement) -> str | None:
    """Return bubblewrap's error if it failed, so that the command never ran; None if it ran."""
    output = finished.output
    if confinement.wrapper and finished.exit_code == 1 and output.startswith("bwrap: "):
        return output.splitlines()[0]
    return None
