"""Starts SkyRL's Tinker API server on the JAX backend. skyrl.tinker.api starts its engine by `uv run`, which is replaced
by the interpreter that runs this script. Usage: serve.py --base-model FOLDER --backend jax --port PORT …
"""

import argparse
import sys

import uvicorn
from skyrl.tinker import api
from skyrl.tinker.config import EngineConfig, add_model, config_to_argv

api._build_uv_run_cmd_engine = lambda parent, config: [
    sys.executable,
    "-m",
    "skyrl.tinker.engine",
    *config_to_argv(config),
]
parser = argparse.ArgumentParser()
add_model(parser, EngineConfig)
parser.add_argument("--host", default="127.0.0.1")
parser.add_argument("--port", type=int, required=True)
options = parser.parse_args()
known = {name: value for name, value in vars(options).items() if name in EngineConfig.model_fields}
api.app.state.engine_config = EngineConfig.model_validate(known)
uvicorn.run(api.app, host=options.host, port=options.port, log_level="warning")
