"""Edge cases of the ids of open server requests: those sent again when a thread is resumed."""

from tests.rules.approval_talk import Approvals, command_item
from tests.rules.edge import Illegal, Legal
from tests.rules.edges_approvals import pending, talk_settings
from tests.rules.traces import THREAD, TURN, Talk, thread_object

UNIQUE = "server-request.id-unique"


def resume(talk: Approvals) -> int:
    """Ask for the thread whose question is open; gives the id of the request."""
    return talk.asks("thread/resume", threadId=THREAD).last.id


def shown(talk: Approvals, request: int) -> Approvals:
    turn = {"id": TURN, "items": [command_item()], "status": "inProgress", "error": None}
    active = {"type": "active", "activeFlags": ["waitingOnApproval"]}
    thread = thread_object(turns=[turn], status=active)
    return talk.answers(talk_settings(thread), to=request)


def again(talk: Approvals) -> Approvals:
    """The same question, with the same id."""
    talk._question -= 1  # pyright: ignore[reportPrivateUsage]
    return talk.question()


def settled(talk: Approvals) -> Talk:
    talk.decides("accept").resolved().completed(command_item(status="completed"))
    return talk.message("m-1", "So be it.").end_turn()


def two_resumes_at_once() -> Talk:
    talk = pending()
    first, second = resume(talk), resume(talk)
    shown(shown(talk, first), second)
    return settled(again(again(talk)))


def resumed_and_resumed_later() -> Talk:
    talk = pending()
    again(shown(talk, resume(talk)))
    return settled(again(shown(talk, resume(talk))))


def asked_while_it_is_resumed() -> Talk:
    """The question crosses the request, whose answer puts it once more."""
    talk = Approvals().running("untrusted").started(command_item())
    request = resume(talk)
    return settled(again(shown(talk.question(), request)))


def thrice_for_two_resumes() -> Talk:
    talk = pending()
    first, second = resume(talk), resume(talk)
    shown(shown(talk, first), second)
    return settled(again(again(again(talk))))


def twice_for_one_resume() -> Talk:
    talk = pending()
    return settled(again(again(shown(talk, resume(talk)))))


def asked_again_though_resumed_before() -> Talk:
    """The resume was answered before there was a question."""
    talk = Approvals().running("untrusted").started(command_item())
    shown(talk, resume(talk)).question()
    return settled(again(talk))


LEGAL: list[Legal] = [
    Legal(UNIQUE, "two resumes at once ask again twice", two_resumes_at_once),
    Legal(UNIQUE, "each of two resumes asks again", resumed_and_resumed_later),
    Legal(UNIQUE, "asked while the thread is resumed", asked_while_it_is_resumed),
]
ILLEGAL: list[Illegal] = [
    Illegal(UNIQUE, "asked again thrice for two resumes", thrice_for_two_resumes),
    Illegal(UNIQUE, "asked again twice for one resume", twice_for_one_resume),
    Illegal(UNIQUE, "asked again after an earlier resume", asked_again_though_resumed_before),
]
