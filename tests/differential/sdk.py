"""Reads sessions with the Python SDK and prints what it found, one JSON object per line.

The sessions lie below $CLAUDE_CONFIG_DIR; the ids to read are the lines of standard input.
First come the rows of `list_sessions`, then the uuids that `get_session_messages` gives.
"""

import dataclasses
import json
import sys

import claude_agent_sdk as sdk


def main() -> None:
    ids = sys.stdin.read().split()
    for info in sdk.list_sessions():
        print(json.dumps({"listed": dataclasses.asdict(info)}))
    for session in ids:
        try:
            messages = sdk.get_session_messages(session)
            row = {"session": session, "uuids": [message.uuid for message in messages]}
        except (ValueError, RecursionError) as error:
            row = {"session": session, "error": type(error).__name__}
        print(json.dumps(row))


main()
