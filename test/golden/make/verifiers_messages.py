"""Records what the environment server of verifiers 0.4.0 sends during an episode, into test/golden/verifiers/messages.json.

    pip install verifiers==0.4.0 && python test/golden/make/verifiers_messages.py

The episode is the first task of test/verifiers/letter_words_v1.py; a local server answers "apple" to each of its calls.
Each message is [kind, content], the content in base64 of MessagePack as it was received. Texts of the machine (paths,
host) in the trace are not part of it.
"""

import base64
import json
import os
import pathlib
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import msgpack
import zmq

root = pathlib.Path(__file__).resolve().parents[3]


class Answers(BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        reply = {
            "id": "1", "object": "chat.completion", "created": 0, "model": "policy",
            "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "apple"}}],
            "usage": {"prompt_tokens": 5, "completion_tokens": 1, "total_tokens": 6},
        }
        body = json.dumps(reply).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


def main() -> None:
    answers = HTTPServer(("127.0.0.1", 0), Answers)
    threading.Thread(target=answers.serve_forever, daemon=True).start()
    server = subprocess.Popen(
        [sys.executable, root / "examples/verifiers/serve.py", "letter_words_v1", "--tasks", "/dev/null",
         "--address", "tcp://127.0.0.1:0", "--env", '{"agent": {"runtime": {"type": "subprocess"}}}'],
        env={**os.environ, "PYTHONPATH": str(root / "test/verifiers")}, stdout=subprocess.PIPE, text=True,
    )
    address = next(line for line in server.stdout if line.startswith("Serving")).split()[-1]
    socket = zmq.Context().socket(zmq.DEALER)
    socket.connect(address)
    request = {
        "task_data": {"prompt": "Say a word with a.", "letter": "a"},
        "client": {"type": "eval", "base_url": f"http://127.0.0.1:{answers.server_port}/v1", "api_key_var": "NO_KEY"},
        "model": "policy", "sampling": {},
    }
    socket.send_multipart([b"1", b"run", msgpack.packb(request)])
    messages = []
    while not messages or messages[-1][0] != "reply":
        _, kind, content = socket.recv_multipart()
        messages.append([kind.decode(), base64.b64encode(content).decode()])
    server.terminate()
    path = root / "test/golden/verifiers/messages.json"
    path.write_text("[\n" + ",\n".join(json.dumps(message) for message in messages) + "\n]\n")
    print(f"{len(messages)} messages written to {path}")


if __name__ == "__main__":
    main()
