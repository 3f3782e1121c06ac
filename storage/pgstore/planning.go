package pgstore

// planning are settings of every connection that only PostgreSQL knows; nothing but
// speed depends on them.
//
// Each statement is planned once on a connection: planning an append takes as long
// as a small one. A plan that was made while a table was empty is not made again
// when it has grown, so all that reads a whole table is ruled out: each statement
// has an index for everything that it asks for.
var planning = map[string]string{
	"plan_cache_mode":  "force_generic_plan",
	"enable_seqscan":   "off",
	"enable_hashjoin":  "off",
	"enable_mergejoin": "off",
	"enable_indexscan": "on",
	"enable_nestloop":  "on",
	"jit":              "off", // statements are short; compiling them is not
}
