# Folders whole: every script belongs into a release.
EXTRA_DIST += scripts tests/runner tests/mutants .ci

# Installed, with-rxe is called by bin/mrfab_with_rxe; it finds its parts beside it.
runnerdir = $(libexecdir)/mrfab
runner_SCRIPTS = scripts/with-rxe scripts/deps scripts/rxe-guest-init scripts/rxe-guest-run
runnerlibdir = $(runnerdir)/lib
runnerlib_SCRIPTS = scripts/lib/rxe-lines
runnerlib_DATA = scripts/lib/packages.sh scripts/lib/rxe-doctor.sh scripts/lib/rxe-fetch.sh \
	scripts/lib/rxe-hosts.sh scripts/lib/rxe-kernel.sh scripts/lib/rxe-native.sh \
	scripts/lib/rxe-vm.sh scripts/lib/say.sh
bin_SCRIPTS = scripts/mrfab_with_rxe
CLEANFILES += scripts/mrfab_with_rxe

scripts/mrfab_with_rxe: Makefile
	$(AM_V_GEN)$(MKDIR_P) scripts && \
		printf '#!/bin/sh\nexec "%s/with-rxe" "$$@"\n' '$(runnerdir)' >$@ && chmod +x $@
