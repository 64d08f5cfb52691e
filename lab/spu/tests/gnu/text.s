# Text that assemblers could interpret differently. check.sh compares the words with those of the GNU assembler.
	.text
	.align	3
start:	nop
	# Operators: shifts have the precedence of products; | ^ & ! have a higher precedence than sums.
	.long	1+2*3<<1, 1|2^3&1, 6&3+1, 1<<2+1, 6-1|2, 7&3|8, 5%3*2
	.long	1==1, 1==1+1, 3>2, 7<>3, 3 != 2, 2<=2, 1&&1, 1||0, 6!1, !5, 0-5>>60
	.long	-7/2, --3, 8/3*3, 16>>1>>1, 010, 0x1F, 0b101, ~0
	# Names: the latest definition before the use; definitions after the use; addresses.
	.set	a,1
	.long	a
	.set	a,a+4
	.long	a, later, place-start
	b = 3
	.long	b
	b=b*2
	.long	b
place:	.equ	later,(a+1)*2
	# A number is a distance if the instruction has a relative address.
	br	8
	br	.+8
	br	place
	brnz	$3,-4
	lqr	$3,16
	hbrr	8,12
	hbra	8,12
	hbr	16,$3
	lqa	$3,16
	br	place-start
near:	nop
	nop
far:	.set	between,far-near
	br	between
	brnz	$3,far-near
	lqr	$3,far-near-8
	hbrr	far-near,between+4
	.space	4
beyond:	br	beyond-near
	# Immediates at their limits.
	il	$3,-32768 ; il $3,32767
	ilh	$3,65535; ilhu $3,-32768; iohl $3,65535
	ila	$3,0x3ffff
	ai	$3,$4,-512
	andbi	$3,$4,255; ceqbi $3,$4,-128
	shli	$3,$4,63; shlqbyi $3,$4,31; rotmi $3,$4,-63; rotqmbyi $3,$4,-31; roti $3,$4,127; rotqbyi $3,$4,-3
	lqd	$3,-8192($4); stqd $3,8176($sp); lqd $lr,16($1)
	.set	Rx,79
	ai	$Rx,$(Rx+1),a
	lr	$3,$Rx
	lr	$LR,$Sp
	lqd	$lR,16($SP)
	# Padding.
	.byte	1
	.align	3
	nop
	.align	4
	.space	5
	.space	3,7
	.fill	2,4,0x55
	.fill	1,8,-1
	.octa	0x0123456789abcdef0123456789abcdef, -1, 0xffffffffffffffffffffffffffffffff
	.short	65535, -32768
	.byte	255, -128
	.align	2
	.ident	"a;b#c /* no comment"
	nop ; xor $3, /* a comment
	over lines */ $4,$5
	nop
	.align	4
