package awk

// scope says where a variable lives.
type scope uint8

const (
	global scope = iota
	local
	special
)

// variable is a name in its place.
type variable struct {
	name  string
	scope scope
	index int
}

type (
	expr interface{}

	numberExpr float64
	stringExpr string
	regexExpr  struct{ source string } // matched against $0
	fieldExpr  struct{ index expr }
	varExpr    struct{ v *variable }
	indexExpr  struct {
		array *variable
		subs  []expr
	}
	assignExpr struct {
		to    expr
		op    byte // 0 for plain
		value expr
	}
	condExpr struct{ cond, yes, no expr }
	andExpr  struct{ a, b expr }
	orExpr   struct{ a, b expr }
	inExpr   struct {
		subs  []expr
		array *variable
	}
	matchExpr struct {
		text, re expr
		negate   bool
	}
	compareExpr struct {
		op   token
		a, b expr
	}
	concatExpr struct{ a, b expr }
	binaryExpr struct {
		op   byte
		a, b expr
	}
	unaryExpr struct {
		op byte
		x  expr
	}
	incrementExpr struct {
		to     expr
		by     float64
		prefix bool
	}
	groupExpr   struct{ list []expr } // (a, b) before "in", or one expression in parentheses
	builtinExpr struct {
		name string
		f    *builtin
		args []expr
	}
	callExpr struct {
		name string
		f    *function
		args []expr
	}
	getlineExpr struct {
		kind byte // 0 main input, '<' file, '|' command
		from expr
		to   expr
	}
)

type (
	stmt interface{}

	exprStmt  struct{ x expr }
	printStmt struct {
		args   []expr
		format bool
		redir  token // "", ">", ">>" or "|"
		to     expr
	}
	ifStmt struct {
		cond    expr
		yes, no []stmt
	}
	whileStmt struct {
		cond expr
		body []stmt
		do   bool
	}
	forStmt struct {
		init, step stmt
		cond       expr
		body       []stmt
	}
	forInStmt struct {
		key   expr
		array *variable
		body  []stmt
	}
	switchStmt struct {
		x     expr
		cases []switchCase
	}
	deleteStmt struct {
		array *variable
		subs  []expr // nil for all
	}
	blockStmt  struct{ body []stmt }
	exitStmt   struct{ code expr }
	returnStmt struct{ value expr }
	flowStmt   struct{ kind flow } // break, continue, next, nextfile
)

type switchCase struct {
	value expr // nil for default
	body  []stmt
}

// rule is a pattern and its action.
type rule struct {
	from, to expr
	body     []stmt
	print    bool // no action: print the record
	active   bool
}

// function is one of the program's own.
type function struct {
	name    string
	params  []string
	body    []stmt
	defined bool
}

// program is a whole AWK program.
type program struct {
	begin, end [][]stmt
	rules      []*rule
	functions  map[string]*function
	globals    map[string]*variable
}
