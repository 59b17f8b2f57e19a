#include "textflag.h"

// The processor's instructions for SHA-256 take four cycles each, and can begin every second: two hashes side by side take as long
// as one. Lane A has its state in X1 and X2 and sixteen words of the message in X3 to X6, lane B in X7 and X8 and in X9 to X12.
// The state is as SHA256RNDS2 wants it: F E B A, and H G D C, from the lowest word.

// LOAD takes four words of a message, which are big-endian.
#define LOAD(at, message, w) \
	MOVOU at(message), w \
	PSHUFB X15, w

// NEXT replaces words 0 to 3 of sixteen by words 16 to 19.
#define NEXT(w0, w4, w8, w12) \
	SHA256MSG1 w4, w0 \
	MOVO w12, X13 \
	PALIGNR $4, w8, X13 \
	PADDD X13, w0 \
	SHA256MSG2 w12, w0

// ROUNDS does four rounds with words w and the constants at an offset.
#define ROUNDS(at, w, feba, hgdc) \
	MOVO w, X0 \
	PADDD at(AX), X0 \
	SHA256RNDS2 X0, feba, hgdc \
	PSHUFD $0x0e, X0, X0 \
	SHA256RNDS2 X0, hgdc, feba

#define FIRST(at, a, b) \
	LOAD(at, SI, a) \
	LOAD(at, DX, b) \
	ROUNDS(at, a, X1, X2) \
	ROUNDS(at, b, X7, X8)

#define LATER(at, a0, a4, a8, a12, b0, b4, b8, b12) \
	NEXT(a0, a4, a8, a12) \
	NEXT(b0, b4, b8, b12) \
	ROUNDS(at, a0, X1, X2) \
	ROUNDS(at, b0, X7, X8)

#define SIXTEEN(at) \
	LATER(at, X3, X4, X5, X6, X9, X10, X11, X12) \
	LATER(at+16, X4, X5, X6, X3, X10, X11, X12, X9) \
	LATER(at+32, X5, X6, X3, X4, X11, X12, X9, X10) \
	LATER(at+48, X6, X3, X4, X5, X12, X9, X10, X11)

// func compress2(a, b *state, pa, pb *byte, blocks int)
TEXT ·compress2(SB), NOSPLIT, $64-40
	MOVQ a+0(FP), DI
	MOVQ b+8(FP), R8
	MOVQ pa+16(FP), SI
	MOVQ pb+24(FP), DX
	MOVQ blocks+32(FP), CX
	LEAQ constants<>(SB), AX
	MOVOU bigEndian<>(SB), X15
	MOVOU 0(DI), X1
	MOVOU 16(DI), X2
	MOVOU 0(R8), X7
	MOVOU 16(R8), X8

block:
	MOVOU X1, a0-16(SP)
	MOVOU X2, a1-32(SP)
	MOVOU X7, b0-48(SP)
	MOVOU X8, b1-64(SP)
	FIRST(0, X3, X9)
	FIRST(16, X4, X10)
	FIRST(32, X5, X11)
	FIRST(48, X6, X12)
	SIXTEEN(64)
	SIXTEEN(128)
	SIXTEEN(192)
	MOVOU a0-16(SP), X13
	PADDD X13, X1
	MOVOU a1-32(SP), X13
	PADDD X13, X2
	MOVOU b0-48(SP), X13
	PADDD X13, X7
	MOVOU b1-64(SP), X13
	PADDD X13, X8
	ADDQ $64, SI
	ADDQ $64, DX
	DECQ CX
	JNZ block

	MOVOU X1, 0(DI)
	MOVOU X2, 16(DI)
	MOVOU X7, 0(R8)
	MOVOU X8, 16(R8)
	RET

DATA bigEndian<>+0(SB)/8, $0x0405060700010203
DATA bigEndian<>+8(SB)/8, $0x0c0d0e0f08090a0b
GLOBL bigEndian<>(SB), RODATA|NOPTR, $16

// The constants of FIPS 180-4, section 4.2.2.
DATA constants<>+0(SB)/8, $0x71374491428a2f98
DATA constants<>+8(SB)/8, $0xe9b5dba5b5c0fbcf
DATA constants<>+16(SB)/8, $0x59f111f13956c25b
DATA constants<>+24(SB)/8, $0xab1c5ed5923f82a4
DATA constants<>+32(SB)/8, $0x12835b01d807aa98
DATA constants<>+40(SB)/8, $0x550c7dc3243185be
DATA constants<>+48(SB)/8, $0x80deb1fe72be5d74
DATA constants<>+56(SB)/8, $0xc19bf1749bdc06a7
DATA constants<>+64(SB)/8, $0xefbe4786e49b69c1
DATA constants<>+72(SB)/8, $0x240ca1cc0fc19dc6
DATA constants<>+80(SB)/8, $0x4a7484aa2de92c6f
DATA constants<>+88(SB)/8, $0x76f988da5cb0a9dc
DATA constants<>+96(SB)/8, $0xa831c66d983e5152
DATA constants<>+104(SB)/8, $0xbf597fc7b00327c8
DATA constants<>+112(SB)/8, $0xd5a79147c6e00bf3
DATA constants<>+120(SB)/8, $0x1429296706ca6351
DATA constants<>+128(SB)/8, $0x2e1b213827b70a85
DATA constants<>+136(SB)/8, $0x53380d134d2c6dfc
DATA constants<>+144(SB)/8, $0x766a0abb650a7354
DATA constants<>+152(SB)/8, $0x92722c8581c2c92e
DATA constants<>+160(SB)/8, $0xa81a664ba2bfe8a1
DATA constants<>+168(SB)/8, $0xc76c51a3c24b8b70
DATA constants<>+176(SB)/8, $0xd6990624d192e819
DATA constants<>+184(SB)/8, $0x106aa070f40e3585
DATA constants<>+192(SB)/8, $0x1e376c0819a4c116
DATA constants<>+200(SB)/8, $0x34b0bcb52748774c
DATA constants<>+208(SB)/8, $0x4ed8aa4a391c0cb3
DATA constants<>+216(SB)/8, $0x682e6ff35b9cca4f
DATA constants<>+224(SB)/8, $0x78a5636f748f82ee
DATA constants<>+232(SB)/8, $0x8cc7020884c87814
DATA constants<>+240(SB)/8, $0xa4506ceb90befffa
DATA constants<>+248(SB)/8, $0xc67178f2bef9a3f7
GLOBL constants<>(SB), RODATA|NOPTR, $256
