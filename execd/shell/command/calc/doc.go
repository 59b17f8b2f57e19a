// Package calc holds bc and dc: calculators on decimal numbers of any length.
//
// A number is an integer and how many of its digits stand after the point, as in both programs; length and scale are
// bounded, since they are work and memory. Every operation is a step of the script's bound.
package calc
