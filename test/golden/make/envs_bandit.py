"""RAGEN's bandits on Gymnasium's generator, for test/golden/envs/bandit.json (needs numpy and gymnasium):
python test/golden/make/envs_bandit.py > test/golden/envs/bandit.json
RAGEN draws pair, order and payout from np_random(seed + index of the instance). Here pair and order are those of
the first instance, and the payout comes from the member's own stream, SeedSequence(seed, spawn_key=(member,)).
Row: seed, member, the two arms in the order shown, and their payouts in the same order."""
import random
import numpy as np
from gymnasium.utils import seeding
from envs_trace import dump

pairs = {
    "train": "Teacher/Trader Nurse/StartupFounder Librarian/Investor Accountant/StockBroker Engineer/RealEstateAgent Pharmacist/Musician "
             "Clerk/Freelancer Technician/Youtuber Planner/Artist Postman/Pilot Banker/VentureCapitalist Gardener/Cryptominer",
    "test": "Receptionist/Explorer Archivist/Filmmaker Bookkeeper/Consultant SocialWorker/Photographer Mechanic/GameDesigner "
            "Secretary/Entrepreneur Cashier/DataScientist CivilServant/StartupAccelerator",
}


def rows(split, chance, seeds):
    names = [pair.split("/") for pair in pairs[split].split()]
    for seed in seeds:
        rng, _ = seeding.np_random(seed)
        low, high = names[int(rng.random() * len(names))]
        shown = [low, high] if rng.random() < 0.5 else [high, low]
        member = random.Random(f"member {seed}").randrange(16)
        payouts = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(member,))))
        pays = {low: 0.1, high: 1 if payouts.random() < chance else 0}
        yield [seed, member, *shown, *(pays[arm] for arm in shown)]


sets = [("train", 0.25, [*range(250), *range(10000, 10150)]), ("test", 0.25, [*range(100), *range(123, 180)]), ("train", 0.6, range(50))]
print(dump({"split": s, "chance": c, "rows": list(rows(s, c, seeds))} for s, c, seeds in sets))
