# SPDX-License-Identifier: BSD-2-Clause
#
# What the tests that compare our headers with libfabric's share: finding the two
# trees, running a probe against one of them, and the self-test on damaged copies.
package header_trees;

use strict;
use warnings;
use Cwd qw(abs_path);
use File::Basename qw(dirname);
use File::Path qw(make_path);
use File::Temp qw(tempdir);
use header_facts;

sub skip {
	print "SKIP: @_\n";
	exit 77;
}

sub compiler {
	for my $cc ($ENV{CC}, 'gcc', 'clang', 'cc') {
		next if !defined $cc || $cc eq '';
		my ($status) = header_facts::run($cc, '--version');

		return $cc if $status == 0;
	}
	skip('no C compiler');
}

# "1.17" of a tree's headers.
sub version {
	my $text = slurp("$_[0]/rdma/fabric.h");

	return join('.', map { $text =~ /^#define\s+FI_${_}_VERSION\s+(\d+)/m ? $1 : '?' }
		    qw(MAJOR MINOR));
}

# (compiler, our include directory, libfabric's); exits 77 without the last, or where it is of
# another release, whose headers have more names.
sub setup {
	my $top = $ENV{top_srcdir} || dirname(dirname(dirname(abs_path($0))));
	my $theirs = $ENV{LIBFABRIC_INCLUDE} || '/usr/include';

	die "$top/include/rdma/fabric.h is not there\n"
		if !-f "$top/include/rdma/fabric.h";
	skip("no $theirs/rdma/fabric.h: libfabric-dev is not installed")
		if !-f "$theirs/rdma/fabric.h";
	my $cc = compiler();
	my $ours = abs_path("$top/include");
	die "both trees are $ours\n" if $ours eq abs_path($theirs);
	my ($v, $w) = (version($ours), version($theirs));
	skip("libfabric $w is installed: our headers are those of $v") if $v ne $w;
	return ($cc, $ours, abs_path($theirs));
}

my %ran;

# The output lines of a program compiled against a tree.
sub build_and_run {
	my $key = join(" ", $_[0], $_[1]{tree}, @_[2, 3]);

	$ran{$key} ||= [ build_and_run_anew(@_) ];
	return @{$ran{$key}};
}

sub build_and_run_anew {
	my ($cc, $f, $level, $src) = @_;
	my $file = header_facts::scratch('.c', $src);
	my $exe = "$file.exe";
	my ($status, $out) = header_facts::run($cc, '-std=gnu11', $level, '-w', '-I',
					       $f->{tree}, $file, '-o', $exe);

	die "probe does not compile against $f->{tree}:\n$out" if $status;
	($status, $out) = header_facts::run($exe);
	die "probe against $f->{tree} failed ($status):\n$out" if $status;
	return split /\n/, $out;
}

sub slurp {
	my ($path) = @_;

	open(my $fh, '<', $path) or die "$path: $!\n";
	local $/;
	my $text = <$fh>;
	close($fh);
	return $text;
}

# A private copy of the tree, with one file's text replaced.
sub damaged_copy {
	my ($tree, $name, $text) = @_;
	my $dir = tempdir(CLEANUP => 1);

	make_path("$dir/rdma/providers");
	for my $h (header_facts::headers_of($tree)) {
		open(my $fh, '>', "$dir/$h") or die "$dir/$h: $!\n";
		print $fh ($h eq "rdma/$name" ? $text : slurp("$tree/$h"));
		close($fh) or die "$dir/$h: $!\n";
	}
	return $dir;
}

# Each damage: [ file, pattern, replacement, what a fault must match ]. `check` gets
# a directory and returns its faults. Returns an exit status.
sub try_damages {
	my ($tree, $damages, $check) = @_;
	my $missed = 0;

	if (my @f = $check->($tree)) {
		print "not ok: undamaged headers: $f[0]\n";
		$missed++;
	}
	for my $d (@$damages) {
		my ($name, $from, $to, $want) = @$d;
		my $text = slurp("$tree/rdma/$name");

		if ($text !~ s/$from/$to->()/e) {
			print "not ok: $name has no $from\n";
			$missed++;
			next;
		}
		my @faults = $check->(damaged_copy($tree, $name, $text));
		my ($hit) = grep { /$want/ } @faults;
		if (defined $hit) {
			print "ok: $name: ", substr($hit, 0, 100) =~ s/\n.*//sr, "\n";
		} else {
			print "not ok: $name, wanted $want, got: ",
				@faults ? $faults[0] : 'nothing', "\n";
			$missed++;
		}
	}
	printf("self-test: %d damages, %d missed\n", scalar(@$damages), $missed);
	return $missed ? 1 : 0;
}

1;
