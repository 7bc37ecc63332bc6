EXTRA_DIST += README.md CONTRIBUTING.md \
	docs/ARCHITECTURE.md \
	docs/CONFORMANCE.md \
	docs/WIRE.md

# man(1) finds them beside libfabric's own pages of the same names: man 3mrfab fi_mr.
man_MANS =
EXTRA_DIST += $(man_MANS)
