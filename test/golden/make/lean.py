"""Writes test/golden/envs/lean.json with the Kimina project's own client. The file has the request that the client
sends to our substitute for a Lean server, and the client's results from the substitute's responses, which shows that
the responses have the format of a real server.

Run: python test/golden/make/lean.py   (needs kimina-client 0.2.1, and node)
"""
import json
import subprocess
import typing
from pathlib import Path

import typing_extensions

typing.TypedDict = typing_extensions.TypedDict  # required by the client's models before Python 3.12
from kimina_client import KiminaClient, Infotree, Snippet

root = Path(__file__).parent.parent.parent
server = subprocess.Popen(["node", root / "unit/envs/lean/tiny-lean.mjs", "--http"], stdout=subprocess.PIPE, text=True)
try:
    client = KiminaClient(api_url=f"http://127.0.0.1:{server.stdout.readline().strip()}", api_key="secret", http_timeout=5, n_retries=1)
    head = "import Mathlib\n\ntheorem curried (p q r : Prop) (h : p ∧ q → r) : p → q → r := by\n"
    requests, answers = [], []
    for tactics in ["", "  intro hp hq\n", "  intro hp hq\n  exact h ⟨hp, hq⟩\n", "  sorry\n", "  simp\n", "  slow\n"]:
        snippet = Snippet(id="one", code=head + tactics)
        response = client.api_check([snippet], timeout=30, debug=True, reuse=True, infotree=Infotree.tactics, safe=False)
        requests.append(json.loads(server.stdout.readline()))
        [result] = response.results
        answers.append({"code": snippet.code, "result": result.model_dump(), "status": result.analyze().status.value})
finally:
    server.kill()
golden = {"request": requests[0], "answers": answers}
root.joinpath("golden/envs/lean.json").write_text(json.dumps(golden, ensure_ascii=False, indent=1) + "\n")
