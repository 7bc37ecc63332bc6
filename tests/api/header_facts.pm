# SPDX-License-Identifier: BSD-2-Clause
#
# Reads a tree of fabric headers (TREE/rdma/fabric.h, TREE/rdma/fi_*.h,
# TREE/rdma/providers/fi_*.h) through the C preprocessor and gives what they
# declare. Understands the C those headers are written in and dies, naming the
# declaration, on anything else: a fact is never passed over silently.
#
#   my $f = header_facts::read($cc, $tree);
#   $f->{headers}    [ "rdma/fabric.h", ... ]
#   $f->{files}      { header => absolute path }
#   $f->{struct}     { "struct fi_info" => [ { path, type, text } ... ] }
#   $f->{enum}       { "enum fi_op" or the first constant => [ constants ] }
#   $f->{func}       { fi_close => { ret, params => [ { type, name } ], inline,
#                      variadic, attr, text } }
#   $f->{typedef}    { fi_addr_t => type text }
#   $f->{macro}      { FI_MSG => undef (object-like) or [ parameter names ] }
package header_facts;

use strict;
use warnings;
use Cwd qw(abs_path);
use File::Temp qw(tempdir);

my $tmp = tempdir(CLEANUP => 1);
my $serial = 0;

my $ID = qr/[A-Za-z_]\w*/;
my $FABRIC = qr{/rdma/(?:providers/)?(?:fi_\w+|fabric)\.h$};
my $TOKEN = qr/"(?:[^"\\]|\\.)*" | '(?:[^'\\]|\\.)*' | \w+ | \.\.\. | -> |
	      << | >> | && | \|\| | [<>=!]= | \S/x;

# Writes text to a new file of the private directory, returns its path.
sub scratch {
	my ($suffix, $text) = @_;
	my $path = sprintf("%s/f%d%s", $tmp, $serial++, $suffix);

	open(my $fh, '>', $path) or die "$path: $!\n";
	print $fh $text;
	close($fh) or die "$path: $!\n";
	return $path;
}

sub shell_quote {
	my ($word) = @_;

	$word =~ s/'/'\\''/g;
	return "'$word'";
}

# Runs a command (a shell prefix such as $CC, and words), returns (status, output).
sub run {
	my ($prefix, @words) = @_;
	my $cmd = join(' ', $prefix, map { shell_quote($_) } @words);
	my $out = `LC_ALL=C $cmd 2>&1`;

	return ($?, $out);
}

sub headers_of {
	my ($tree) = @_;
	my @found = (glob("$tree/rdma/fabric.h"), glob("$tree/rdma/fi_*.h"),
		     glob("$tree/rdma/providers/fi_*.h"));

	return sort map { substr($_, length($tree) + 1) } grep { -f $_ } @found;
}

sub includes {
	return join('', map { "#include <$_>\n" } @_);
}

# The tree's own lines of the preprocessed headers; dies when one is missing from
# the tree and the compiler took it from elsewhere.
sub preprocess {
	my ($cc, $tree, $own, @headers) = @_;
	my $src = scratch('.c', includes(@headers));
	my ($status, $out) = run($cc, '-E', '-dD', '-I', $tree, $src);
	my ($keep, @lines, %system) = (0);

	die "cannot preprocess $tree:\n$out" if $status;
	for my $line (split /\n/, $out) {
		if ($line =~ /^# \d+ "([^"]*)"/) {
			my $file = $1;
			my $real = -e $file ? abs_path($file) : $file;

			$keep = $own->{$real};
			die "$file is not of $tree\n" if !$keep && $file =~ $FABRIC;
			$system{$1} = 1 if !$keep && $file =~ m{^/.*?([\w.-]+\.h)$};
			next;
		}
		push @lines, $line if $keep;
	}
	return (\@lines, \%system);
}

sub tokens {
	my ($text) = @_;

	return $text =~ /$TOKEN/g;
}

# One spelling for equal token sequences.
sub spell {
	my $s = join(' ', @_);

	$s =~ s/ ([,;)\]])/$1/g;
	$s =~ s/([(\[*]) /$1/g;
	$s =~ s/ \(/(/g;
	$s =~ s/(\w)\*/$1 */g;
	return $s;
}

# The index of the bracket that closes the one at $i.
sub closing {
	my ($t, $i) = @_;
	my %open = ('(' => ')', '{' => '}', '[' => ']');
	my ($o, $c, $depth) = ($t->[$i], $open{$t->[$i]}, 0);

	for (; $i < @$t; $i++) {
		$depth++ if $t->[$i] eq $o;
		return $i if $t->[$i] eq $c && --$depth == 0;
	}
	die "unbalanced $o\n";
}

# Takes attributes out of a token list; returns (list, attribute text).
sub strip_attributes {
	my @t = @_;
	my (@rest, @attr);

	for (my $i = 0; $i < @t; $i++) {
		if ($t[$i] eq '__attribute__') {
			my $end = closing(\@t, $i + 1);

			push @attr, spell(@t[$i + 2 .. $end - 1]);
			$i = $end;
		} elsif ($t[$i] !~ /^__(?:extension|inline|restrict)/) {
			push @rest, $t[$i];
		}
	}
	return (\@rest, join(' ', sort @attr));
}

# Splits tokens at a separator outside brackets.
sub split_at {
	my ($sep, @t) = @_;
	my @parts = ([]);

	for (my $i = 0; $i < @t; $i++) {
		if ($t[$i] =~ /^[({\[]$/) {
			my $end = closing(\@t, $i);

			push @{$parts[-1]}, @t[$i .. $end];
			$i = $end;
		} elsif ($t[$i] eq $sep) {
			push @parts, [];
		} else {
			push @{$parts[-1]}, $t[$i];
		}
	}
	return grep { @$_ } @parts;
}

# A declarator's (name, type without the name) from its tokens.
sub declarator {
	my @t = @_;
	my $at;

	for my $i (0 .. $#t - 2) {
		next if "$t[$i]$t[$i + 1]" ne '(*' || $t[$i + 2] !~ /^$ID$/;
		$at = $i + 2;
		last;
	}
	if (!defined $at) {
		$at = $#t;
		$at-- while $at >= 0 && $t[$at] !~ /^$ID$/;
	}
	die "no name in: @t\n" if $at < 1;
	my $name = $t[$at];
	splice(@t, $at, 1);
	return ($name, spell(@t));
}

# The members of a struct or union body, nested ones as paths.
sub members {
	my ($prefix, @body) = @_;
	my @found;

	for my $m (split_at(';', @body)) {
		my @t = @$m;
		if ($t[0] =~ /^(?:struct|union)$/ && $t[1] eq '{') {
			my $end = closing(\@t, 1);
			my @name = @t[$end + 1 .. $#t];

			die "nested declarator: @t\n" if @name > 1;
			push @found, members($prefix . (@name ? "$name[0]." : ''),
					     @t[2 .. $end - 1]);
			next;
		}
		die "not understood: @t\n" if grep { $_ eq ':' || $_ eq '{' } @t;
		die "two declarators: @t\n" if split_at(',', @t) > 1;
		my ($name, $type) = declarator(@t);

		push @found, { path => $prefix . $name, type => $type,
			       text => spell(@t) };
	}
	return @found;
}

sub parameters {
	my @t = @_;

	return () if !@t || (@t == 1 && $t[0] eq 'void');
	return map {
		my ($name, $type) = $_->[0] eq '...' ? ('...', '...') : declarator(@$_);
		{ name => $name, type => $type }
	} split_at(',', @t);
}

sub add_function {
	my ($f, $attr, @t) = @_;
	my $inline = grep { $_ eq 'inline' } @t;
	my ($open, $name);

	@t = grep { !/^(?:static|inline|extern)$/ } @t;
	for my $i (1 .. $#t) {
		next if $t[$i] ne '(';
		($open, $name) = ($i, $t[$i - 1]);
		last;
	}
	die "no function: @t\n" if !defined $open || $name !~ /^$ID$/;
	my $end = closing(\@t, $open);
	my @p = parameters(@t[$open + 1 .. $end - 1]);

	$f->{func}{$name} = {
		ret => spell(@t[0 .. $open - 2]), inline => $inline ? 1 : 0,
		variadic => (@p && $p[-1]{name} eq '...') ? 1 : 0,
		params => [ grep { $_->{name} ne '...' } @p ],
		attr => $attr, text => spell(@t[0 .. $end]),
		type => spell(@t[0 .. $open - 2]) . ' (*)' . spell(@t[$open .. $end]),
	};
}

# A struct, union or enum definition; false when the tokens are none.
sub add_definition {
	my ($f, @t) = @_;
	my $kind = $t[0];

	return 0 if $kind !~ /^(?:struct|union|enum)$/;
	my $tag = $t[1] eq '{' ? undef : $t[1];
	my $open = defined $tag ? 2 : 1;
	return 1 if @t == 2;
	return 0 if $t[$open] ne '{';
	my $end = closing(\@t, $open);
	die "declarator after a definition: @t\n" if $end != $#t;
	my @body = @t[$open + 1 .. $end - 1];

	if ($kind eq 'enum') {
		my @names = map { $_->[0] } split_at(',', @body);
		$f->{enum}{defined $tag ? "enum $tag" : $names[0]} = \@names;
		return 1;
	}
	die "untagged $kind: @t\n" if !defined $tag;
	$f->{struct}{"$kind $tag"} = [ members('', @body) ];
	return 1;
}

sub add_declaration {
	my ($f, @raw) = @_;
	my ($t, $attr) = strip_attributes(@raw);

	return if !@$t;
	if ($t->[0] eq 'typedef') {
		my ($name, $type) = declarator(@$t[1 .. $#$t]);

		$f->{typedef}{$name} = $type;
	} elsif (!add_definition($f, @$t)) {
		add_function($f, $attr, @$t);
	}
}

# Cuts the token stream into declarations: up to a `;`, or to the end of a body.
sub parse {
	my ($f, @t) = @_;
	my @decl;

	for (my $i = 0; $i < @t; $i++) {
		if ($t[$i] eq ';') {
			add_declaration($f, @decl);
			@decl = ();
		} elsif ($t[$i] eq '{' && @decl && $decl[-1] eq ')') {
			add_declaration($f, @decl);
			@decl = ();
			$i = closing(\@t, $i);
		} elsif ($t[$i] =~ /^[({\[]$/) {
			my $end = closing(\@t, $i);

			push @decl, @t[$i .. $end];
			$i = $end;
		} else {
			push @decl, $t[$i];
		}
	}
	die "unfinished: @decl\n" if @decl;
}

sub macros {
	my ($f, @lines) = @_;

	for (@lines) {
		delete $f->{macro}{$1} if /^#\s*undef\s+($ID)/;
		next if !/^#\s*define\s+($ID)(\(([^)]*)\))?/;
		$f->{macro}{$1} = defined $2 ? [ split /\s*,\s*/, $3 ] : undef;
	}
}

my %known;

# Facts of the given headers of a tree, of all of them by default.
sub read {
	my $key = join(" ", @_);

	return $known{$key} ||= read_tree(@_);
}

sub read_tree {
	my ($cc, $tree, @headers) = @_;
	my $f = { struct => {}, enum => {}, func => {}, typedef => {}, macro => {} };
	my %own;

	$tree = abs_path($tree);
	$f->{tree} = $tree;
	$f->{files} = { map { $_ => abs_path("$tree/$_") } headers_of($tree) };
	%own = map { $_ => 1 } values %{$f->{files}};
	@headers = headers_of($tree) if !@headers;
	$f->{headers} = [ @headers ];

	my ($lines, $system) = preprocess($cc, $tree, \%own, @headers);
	$f->{system} = $system;
	macros($f, @$lines);
	parse($f, tokens(join("\n", grep { !/^#/ } @$lines)));
	return $f;
}

# Every name of the facts, as { kind-qualified name => 1 }.
sub names {
	my ($f) = @_;
	my %n;

	for my $s (keys %{$f->{struct}}) {
		$n{$s} = 1;
		$n{"$s.$_->{path}"} = 1 for @{$f->{struct}{$s}};
	}
	for my $e (keys %{$f->{enum}}) {
		$n{$e} = 1 if $e =~ /^enum /;
		$n{"constant $_"} = 1 for @{$f->{enum}{$e}};
	}
	$n{"function $_"} = 1 for keys %{$f->{func}};
	$n{"typedef $_"} = 1 for keys %{$f->{typedef}};
	$n{defined $f->{macro}{$_} ? "macro $_()" : "macro $_"} = 1
		for keys %{$f->{macro}};
	return \%n;
}

1;
