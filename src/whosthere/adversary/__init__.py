"""What an attacker does: knowledge, marginals, synthetic traces, groups, classifiers, attacks.

Nothing here can read what an attacker would not have: true counts and membership stay outside.
"""
