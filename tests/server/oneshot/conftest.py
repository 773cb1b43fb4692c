import pytest
from runs import Agent


@pytest.fixture
def agent(tmp_path) -> Agent:
    return Agent(tmp_path)
