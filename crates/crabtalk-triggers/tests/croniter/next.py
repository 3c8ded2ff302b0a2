"""Answers each line [expression, zone, from, count] with the next times of croniter, in seconds."""

import json
import sys
from datetime import datetime
from zoneinfo import ZoneInfo

from croniter import croniter

for line in sys.stdin:
    expression, zone, start, count = json.loads(line)
    times = croniter(expression, datetime.fromtimestamp(start, ZoneInfo(zone)))
    print(json.dumps([int(times.get_next(float)) for _ in range(count)]), flush=True)
