"""`python -m combee_core.cli`."""

from __future__ import annotations

import sys

from combee_core.cli import main

sys.exit(main())
