"""Example host in tests: a scripted model, and a person whose acts a test sets."""

from collections.abc import Callable

from examples.agent_host.batches import Workbench
from examples.agent_host.messages import SystemText, ToolAnswer
from examples.agent_host.model import Model
from examples.agent_host.people import Permission, PersonInput
from examples.agent_host.scripts import call
from examples.agent_host.session import Host, Session
from examples.agent_host.stub_model import ModelAnswer, StubModel, in_order
from examples.agent_host.tools import Tool, ToolError
from examples.agent_host.transcript import Transcript
from guardwave.client import Assignment
from guardwave.guards import Mode, pipeline, side_effect
from guardwave.reducer.guards.messages import REPEATED_FAILURE_REMINDER
from tests.control_plane.client.telemetry_doors import Door

GUARDS = pipeline.GUARDS
DUPLICATE, IDENTICAL, SIDE_EFFECT, REPEATED = GUARDS
READS = side_effect.ToolDeclaration(side_effect=False)


class TestPerson:
    """A person whose acts a test lays out: by default patient, silent and agreeable."""

    __test__ = False

    def __init__(self) -> None:
        self.shown: list[str] = []
        self.drains: list[object] = []
        self.questions: list[str] = []
        self.types: Callable[[int], PersonInput] = lambda _: PersonInput()
        self.cancels: Callable[[], bool] = lambda: False
        self.permits: Callable[[str], Permission] = lambda _: Permission.ALLOWED
        self.approves = True

    def show(self, text):
        self.shown.append(text)

    def is_cancelled(self):
        return self.cancels()

    def drain(self, request):
        self.drains.append(request)
        return self.types(len(self.drains))

    def permit(self, tool):
        return self.permits(tool)

    def approve(self, question):
        self.questions.append(question)
        return self.approves


class World:
    """One host, its model, its session, and what it reported through the real SDK."""

    def __init__(self, directory):
        self.door = Door()
        self.model = StubModel(in_order())
        self.model.__enter__()
        self.person = TestPerson()
        self.modes = dict.fromkeys(GUARDS, Mode.ENFORCE)
        self.routes: list[object] = []
        self.ran: list[tuple[str, object]] = []
        self.path = directory / "transcript.ndjson"
        self.hooks = ()
        self.reports_execution = True
        self.limits = pipeline.Limits()
        self.now_ms = 1_800_000_000_000
        self._transcript: Transcript | None = None
        self._session: Session | None = None

    @property
    def transcript(self) -> Transcript:
        if self._transcript is None:
            self._transcript = Transcript(self.path)
        return self._transcript

    @transcript.setter
    def transcript(self, transcript):
        self._transcript = transcript

    @property
    def session(self) -> Session:
        if self._session is None:
            self._session = Session(self.host(), self.transcript, self.person, person_id="ann")
        return self._session

    def host(self) -> Host:
        return Host(
            Model(self.model.url),
            Workbench(self.tools(), self.hooks, reports_execution=self.reports_execution),
            self._resolve,
            self.door.telemetry,
            limits=self.limits,
            now_ms=lambda: self.now_ms,
        )

    def _resolve(self, route):
        self.routes.append(route)
        return [
            Assignment(guard, mode, assignment_id=f"a1.{guard}")
            for guard, mode in self.modes.items()
        ]

    def tools(self):
        def fetch(arguments):
            self.ran.append(("fetch", arguments["url"]))
            if "down" in str(arguments["url"]):
                raise ToolError("timeout", "No answer in time.")
            return "A page."

        def send(arguments):
            self.ran.append(("send", arguments["to"]))
            return "Sent."

        tools = (
            Tool("fetch", fetch, ("url",), declaration=READS),
            Tool("send", send, ("to",), declaration=side_effect.ToolDeclaration(side_effect=True)),
            Tool("guarded", lambda _: "Done.", declaration=READS, needs_permission=True),
        )
        return {tool.name: tool for tool in tools}

    def restart(self):
        """Begin a new process on the same transcript."""
        self._transcript = self._session = None

    def play(self, *steps):
        """Let the model give these answers, one after the other."""
        self.model.script = in_order(*steps)

    def prompt(self, text="go", **how):
        return self.session.prompt(text, **how)

    def transitions(self, guard=REPEATED):
        """Return the attributes of each transition of a guard so far."""
        events = self.events("agent.guard.transition")
        return [event for event in events if event["agent.guard.name"] == guard]

    def decisions(self, guard=REPEATED):
        """Return the decision words that a guard has reported so far."""
        return [event["agent.guard.decision"] for event in self.transitions(guard)]

    def events(self, name):
        """Return the attributes of each event of this name so far."""
        return [attributes for found, attributes in self.door.events() if found == name]

    def answers(self):
        """Return every tool answer of the transcript."""
        return [
            message.text for message in self.transcript.messages if isinstance(message, ToolAnswer)
        ]

    def reminders(self):
        """Return how many reminders stand in the transcript."""
        return self.transcript.messages.count(SystemText(REPEATED_FAILURE_REMINDER))

    def close(self):
        self.model.__exit__(None, None, None)
        self.door.close()


def failing(turn, *, times=4, where="down"):
    """Return an answer that asks for pages which never load."""
    return ModelAnswer(
        "",
        tuple(
            call(f"f{where}{turn}_{at}", "fetch", url=f"http://{where}/{turn}/{at}")
            for at in range(times)
        ),
    )
