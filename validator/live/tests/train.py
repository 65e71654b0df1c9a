"""A training script that knows nothing of plans: python3 train.py MODEL STEPS. Prints each loss with all its bits."""

import sys

import models

_, _, step = models.make(sys.argv[1])
for _ in range(int(sys.argv[2])):
    print(step().hex())
