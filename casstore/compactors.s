// Without an assembly file the compiler wants a body for each function, and those of compactors.go are Badger's.
