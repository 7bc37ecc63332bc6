# Folders whole: every script belongs into a release.
EXTRA_DIST += scripts tests/runner tests/mutants .ci
