"""Validates trajectories with Harbor's validator and models; prints one JSON line per file.

Each line has the validator's errors and the trajectory as Harbor's models write it again.
"""

import json
import sys
from pathlib import Path

from harbor.models.trajectories import Trajectory
from harbor.utils.trajectory_validator import TrajectoryValidator

for path in sorted(Path(sys.argv[1]).glob("*.json")):
    validator = TrajectoryValidator()
    validator.validate(path)
    model = Trajectory.model_validate_json(path.read_text(encoding="utf-8"))
    print(json.dumps({"errors": validator.errors, "trajectory": model.model_dump(mode="json", exclude_none=True)}))
