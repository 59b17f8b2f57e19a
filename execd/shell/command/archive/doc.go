// Package archive holds tar, zip, unzip and the compressors: gzip, gunzip, zcat, zstd, unzstd, zstdcat, xz, unxz, xzcat,
// bunzip2, bzcat.
//
// All stream; a member's bytes are never held whole. Names that would lead out of the directory that is extracted to are
// cut (tar) or refused (unzip). What an archive says of sizes is not believed: every byte that comes out is counted.
package archive
