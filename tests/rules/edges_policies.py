"""Edge cases of the rules on the approval policy, and on later effects of an approval."""

from typing import Any

from harness.judge.verdict import Level
from tests.rules.approval_talk import CWD, FILE, Approvals, command_item, file_item
from tests.rules.edge import Illegal, Legal
from tests.rules.traces import THREAD, TURN, Talk, settings, thread_object

OUTPUT = "item/commandExecution/outputDelta"
TOOL_OUTPUT = "item/fileChange/outputDelta"
DIFF = "--- /dev/null\n+++ b/made.txt\n@@ -0,0 +1 @@\n+new\n"
READ_ONLY = {"type": "readOnly", "access": {"type": "fullAccess"}}
FULL = {"type": "dangerFullAccess"}
OTHER = {"turn": "turn_2", "thread": "thr_2"}


def running(policy: str) -> Approvals:
    return Approvals().running(policy)


def done(talk: Talk) -> Talk:
    return talk.message("m-1", "So be it.").end_turn()


def diff(talk: Talk) -> Talk:
    return talk.tells("turn/diff/updated", threadId=THREAD, turnId=TURN, diff=DIFF)


def on_another_thread(decision: str, **more: Any) -> Talk:
    """A command that was approved on one thread, and runs unasked on the next."""
    talk = running("on-request").approved(decision=decision).end_turn()
    talk.asks("thread/start", cwd=CWD, approvalPolicy="on-request")
    thread = thread_object("thr_2")
    talk.answers({"thread": thread, **settings(), "approvalPolicy": "on-request"})
    talk.tells("thread/started", thread=thread).start_turn(**OTHER)
    return talk.item(command_item("call_2", "completed", **more), **OTHER).end_turn(**OTHER)


def resumed_within_the_turn(policy: str) -> Talk:
    """A turn goes on under the policy that it began with; the resume tells of another one."""
    talk = running("untrusted").asks("thread/resume", threadId=THREAD, approvalPolicy=policy)
    talk.answers({"thread": thread_object(), **settings(), "approvalPolicy": policy})
    return done(talk.approved())


def after_a_network_rule() -> Talk:
    talk = running("on-request").approved(decision="applyNetworkPolicyAmendment")
    return done(talk.item(command_item("call_2", "completed")))


def refused_before(exit_code: int) -> Talk:
    talk = running("on-request")
    return done(talk.item(command_item(status="failed", exitCode=exit_code)))


def goes_on_in_its_process() -> Talk:
    """Input typed into an approved process is an item of its own."""
    talk = running("on-request").started(command_item(processId="7")).question()
    talk.decides("accept").resolved().completed(command_item(status="completed", processId="7"))
    return done(talk.item(command_item("call_2", "completed", command="y", processId="7")))


def more_rights_for_good() -> Talk:
    """A question that the text does not have, by which the client allows more."""
    talk = running("on-request").says(
        {"method": "item/permissions/requestApproval", "id": 77, "params": {"threadId": THREAD}}
    )
    talk.sends({"id": 77, "result": {"permissions": ["all"], "scope": "session"}})
    return done(talk.item(command_item(status="completed")))


def unasked(decision: str, status: str, **more: Any) -> Talk:
    talk = running("on-request").approved(decision=decision)
    talk.started(command_item("call_2")).delta("call_2", "made\n", method=OUTPUT)
    return done(talk.completed(command_item("call_2", status, **more)))


def unasked_change() -> Talk:
    talk = running("on-request").approved(decision="acceptForSession")
    return done(diff(talk.item(file_item(status="completed"))))


# What is done before the answer.


def tool_tells(*, before: bool) -> Talk:
    """The tool tells what it is about to do, before it asks or while it asks."""
    talk = running("untrusted").started(file_item())
    if before:
        talk.delta("patch_1", "checking the patch\n", method=TOOL_OUTPUT)
    talk.question("patch_1", FILE)
    if not before:
        talk.delta("patch_1", "adds made.txt\n", method=TOOL_OUTPUT)
    talk.decides("accept").resolved().completed(file_item(status="completed"))
    return done(diff(talk))


def first_try(policy: str, decision: str, status: str, **more: Any) -> Talk:
    """A command that fails in the sandbox, and is asked about then."""
    talk = running(policy).started(command_item())
    talk.delta("call_1", "no rights\n", method=OUTPUT).question().decides(decision).resolved()
    return done(talk.completed(command_item(status=status, **more)))


def another_wrote_it() -> Talk:
    """A command made the file before; the change that is asked about makes it anew."""
    talk = running("untrusted").approved()
    diff(talk).started(file_item())
    diff(talk)
    talk.question("patch_1", FILE).decides("accept").resolved()
    return done(diff(talk.completed(file_item(status="completed"))))


def output_while_asked(policy: str) -> Talk:
    talk = running(policy).started(command_item()).question()
    talk.delta("call_1", "made\n", method=OUTPUT).decides("accept").resolved()
    return done(talk.completed(command_item(status="completed")))


def changed_while_asked(policy: str, *, before: bool) -> Talk:
    talk = running(policy).started(file_item())
    if before:
        diff(talk)
    talk.question("patch_1", FILE)
    if not before:
        diff(talk)
    talk.decides("accept").resolved().completed(file_item(status="completed"))
    return done(diff(talk))


# What was approved for the session.


def next_turn(talk: Talk, turn: str = "turn_2", **more: Any) -> Talk:
    talk.ask_turn(text="again", **more).reply_turn(turn).status("active")
    return talk.turn_started(turn)


def again(talk: Approvals, turn: str = "turn_2", item: str = "call_2", **more: Any) -> Approvals:
    """Asked about the same command."""
    talk.started(command_item(item), turn).question(item, turn=turn, **more).decides("accept")
    return talk.resolved().completed(command_item(item, "completed"), turn).end_turn(turn)


def session(policy: str = "untrusted", decision: str = "acceptForSession") -> Approvals:
    return running(policy).approved(decision=decision).end_turn()


def other_sandbox() -> Talk:
    talk = session()
    next_turn(talk, sandboxPolicy=READ_ONLY)
    return again(talk)


def sandbox_in_doubt() -> Talk:
    """A turn may have the sandbox of the turn before it, or that of the thread."""
    talk = session()
    next_turn(talk, sandboxPolicy=READ_ONLY).end_turn("turn_2")
    next_turn(talk, "turn_3")
    return again(talk, "turn_3", "call_3")


def more_rights_for_the_session() -> Talk:
    """Approved once, and to run with more rights for the session: the first is asked again."""
    talk = running("untrusted").started(command_item()).question().decides("accept").resolved()
    talk.delta("call_1", "no rights\n", method=OUTPUT)
    talk.question(reason="more rights").decides("acceptForSession").resolved()
    talk.completed(command_item(status="completed")).end_turn()
    next_turn(talk)
    return again(talk)


def begun_before_the_answer() -> Talk:
    """Two of the same at once: the second waits for its question when the first is approved."""
    talk = running("untrusted").started(command_item()).started(command_item("call_2")).question()
    talk.decides("acceptForSession").resolved().completed(command_item(status="completed"))
    talk.question("call_2").decides("accept").resolved()
    return done(talk.completed(command_item("call_2", "completed")))


def failed_this_time() -> Talk:
    talk = session()
    next_turn(talk).started(command_item("call_2"), "turn_2")
    talk.delta("call_2", "no network\n", "turn_2", method=OUTPUT)
    talk.question("call_2", turn="turn_2").decides("accept").resolved()
    return talk.completed(command_item("call_2", "completed"), "turn_2").end_turn("turn_2")


def for_another_reason() -> Talk:
    talk = session()
    next_turn(talk)
    return again(talk, reason="it wants the network")


def under_another_policy() -> Talk:
    talk = session()
    next_turn(talk, approvalPolicy="on-failure", sandboxPolicy=FULL)
    talk.started(command_item("call_2"), "turn_2").question("call_2", turn="turn_2")
    talk.decides("decline").resolved().completed(command_item("call_2", "declined"), "turn_2")
    return talk.end_turn("turn_2")


def after_a_resume() -> Talk:
    """The thread was resumed before anything was approved."""
    talk = Approvals().policy("untrusted").asks("thread/resume", threadId=THREAD)
    opened = {"thread": thread_object(), **settings(), "approvalPolicy": "untrusted"}
    talk.answers(opened).start_turn().approved(decision="acceptForSession").end_turn()
    next_turn(talk)
    return again(talk)


def asked_a_third_time() -> Talk:
    talk = session()
    next_turn(talk).item(command_item("call_2", "completed"), "turn_2").end_turn("turn_2")
    next_turn(talk, "turn_3")
    return again(talk, "turn_3", "call_3")


# What was accepted once.


def unasked_again(talk: Approvals, decision: str, status: str, **more: Any) -> Talk:
    """A command that was asked about, and is run again in the next turn, unasked."""
    talk.approved(status, decision=decision).end_turn()
    next_turn(talk, **more).item(command_item("call_2", "completed"), "turn_2")
    return talk.end_turn("turn_2")


def confined() -> Approvals:
    """A sandbox may have stopped the command: then that is what was asked about."""
    talk = Approvals().policy("untrusted").ask_turn(sandboxPolicy=READ_ONLY)
    return talk.reply_turn().status("active").turn_started()


def rule_on_another_thread() -> Talk:
    """A lasting rule may allow a command that was declined before."""
    talk = running("untrusted").approved("declined", decision="decline").end_turn()
    talk.asks("thread/start", cwd=CWD, approvalPolicy="untrusted")
    thread = thread_object("thr_2")
    talk.answers({"thread": thread, **settings(), "approvalPolicy": "untrusted"})
    talk.tells("thread/started", thread=thread).start_turn(**OTHER)
    talk.started(command_item("call_2"), **OTHER)
    talk.question("call_2", turn="turn_2", threadId="thr_2")
    talk.decides("acceptWithExecpolicyAmendment").tells("serverRequest/resolved")
    talk.completed(command_item("call_2", "completed"), **OTHER).end_turn(**OTHER)
    next_turn(talk, "turn_3").item(command_item("call_3", "completed"), "turn_3")
    return talk.end_turn("turn_3")


# never, and on-failure.


def joined(policy: str) -> Talk:
    """A turn/start that is answered with the turn that runs, and gives it another policy."""
    talk = running("never").ask_turn(text="and ask me", approvalPolicy=policy).reply_turn()
    return done(talk.approved())


def refused_override(policy: str) -> Talk:
    """An override that was refused holds nowhere: never is still what counts."""
    talk = Approvals().policy("never").ask_turn(approvalPolicy=policy).refuses()
    talk.start_turn().approved()
    return done(talk)


def failure(decision: str, status: str, *, sandbox: Any = None, earlier: bool = False) -> Talk:
    """Asked under on-failure; a first try need not show on the wire."""
    talk = Approvals().policy("on-failure").ask_turn(sandboxPolicy=sandbox or FULL)
    talk.reply_turn().status("active").turn_started()
    if earlier:
        talk.item(command_item("call_0", "failed", exitCode=1))
    return done(talk.approved(status, decision=decision))


ON_REQUEST = "approval.always-asked"
FIRST = "approval.asks-before-acting"
SESSION = "approval.session-remembered"
NEVER = "approval.never-asked"
FAILURE = "approval.failure-first"
AGAIN = "approval.asked-again"


def hint(rule: str) -> frozenset[str]:
    return frozenset({rule})


LEGAL: list[Legal] = [
    Legal(
        ON_REQUEST,
        "a lasting rule on another thread",
        lambda: on_another_thread("acceptWithExecpolicyAmendment"),
    ),
    Legal(
        ON_REQUEST,
        "a session of several threads",
        lambda: on_another_thread("acceptForSession"),
    ),
    Legal(ON_REQUEST, "a network rule", after_a_network_rule),
    Legal(NEVER, "resumed within the turn", lambda: resumed_within_the_turn("never")),
    Legal(ON_REQUEST, "refused before it ran", lambda: refused_before(-1)),
    Legal(ON_REQUEST, "no such program", lambda: refused_before(127)),
    Legal(ON_REQUEST, "typed into an approved process", goes_on_in_its_process),
    Legal(ON_REQUEST, "more rights for good", more_rights_for_good),
    Legal(FIRST, "the tool tells before it asks", lambda: tool_tells(before=True)),
    Legal(FIRST, "the tool tells while it asks", lambda: tool_tells(before=False)),
    Legal(
        FIRST,
        "untrusted asks about a failure",
        lambda: first_try("untrusted", "accept", "completed"),
        hint(FIRST),
    ),
    Legal(
        FIRST,
        "the failure stands",
        lambda: first_try("untrusted", "decline", "failed", exitCode=1),
        hint(FIRST),
    ),
    Legal(FIRST, "a command wrote it before", another_wrote_it),
    Legal(SESSION, "another sandbox", other_sandbox),
    Legal(SESSION, "the sandbox is in doubt", sandbox_in_doubt),
    Legal(SESSION, "more rights for the session", more_rights_for_the_session),
    Legal(SESSION, "begun before the answer", begun_before_the_answer),
    Legal(SESSION, "failed this time", failed_this_time, hint(FIRST)),
    Legal(SESSION, "for another reason", for_another_reason, hint(SESSION)),
    Legal(SESSION, "under another policy", under_another_policy, hint(SESSION)),
    Legal(
        AGAIN,
        "the sandbox may have stopped it",
        lambda: unasked_again(confined(), "accept", "completed"),
    ),
    Legal(
        AGAIN,
        "the next turn is under never",
        lambda: unasked_again(running("untrusted"), "accept", "completed", approvalPolicy="never"),
    ),
    Legal(AGAIN, "a lasting rule came since", rule_on_another_thread),
    Legal(NEVER, "another turn start joins with on-request", lambda: joined("on-request")),
    Legal(NEVER, "another turn start joins with untrusted", lambda: joined("untrusted")),
    Legal(
        FAILURE,
        "the first try was silent",
        lambda: failure("accept", "completed", sandbox=READ_ONLY),
    ),
    Legal(
        FAILURE,
        "another command had failed",
        lambda: failure("accept", "completed", earlier=True),
    ),
    Legal(FAILURE, "it fails again", lambda: failure("accept", "failed")),
    Legal(FAILURE, "it was declined", lambda: failure("decline", "declined")),
]
ILLEGAL: list[Illegal] = [
    Illegal(ON_REQUEST, "accepted once and run again", lambda: unasked("accept", "completed")),
    Illegal(
        ON_REQUEST,
        "run unasked and failed",
        lambda: unasked("accept", "failed", exitCode=2),
    ),
    Illegal(ON_REQUEST, "on another thread", lambda: on_another_thread("accept")),
    Illegal(ON_REQUEST, "a change in a session of commands", unasked_change, Level.SHOULD),
    Illegal(FIRST, "it prints while asked", lambda: output_while_asked("untrusted")),
    Illegal(FIRST, "it prints while always asked", lambda: output_while_asked("on-request")),
    Illegal(
        FIRST, "run before it is asked", lambda: first_try("on-request", "accept", "completed")
    ),
    Illegal(
        FIRST,
        "changed while asked",
        lambda: changed_while_asked("untrusted", before=False),
        Level.SHOULD,
    ),
    Illegal(
        FIRST,
        "changed before it is asked",
        lambda: changed_while_asked("on-request", before=True),
        Level.SHOULD,
    ),
    Illegal(SESSION, "after a resume", after_a_resume),
    Illegal(SESSION, "asked a third time", asked_a_third_time),
    Illegal(
        NEVER,
        "on-request was refused",
        lambda: refused_override("on-request"),
        also=frozenset({"word.taken"}),
    ),
    Illegal(
        NEVER,
        "untrusted was refused",
        lambda: refused_override("untrusted"),
        also=frozenset({"word.taken"}),
    ),
    Illegal(
        AGAIN,
        "accept taken for the session",
        lambda: unasked_again(running("untrusted"), "accept", "completed"),
        Level.SHOULD,
    ),
    Illegal(
        AGAIN,
        "declined and run the next time",
        lambda: unasked_again(running("untrusted"), "decline", "declined"),
        Level.SHOULD,
    ),
    Illegal(
        FAILURE,
        "asked before anything failed",
        lambda: running("on-failure").approved().end_turn(),
        Level.SHOULD,
    ),
    Illegal(
        FAILURE,
        "asked before the change",
        lambda: running("on-failure").patched().end_turn(),
        Level.SHOULD,
    ),
]
