package acts

import "os"

// forwarded is empty of signals that Windows does not have. The console gives an interrupt to the program too, so
// aps only has to outlive it.
var forwarded = []os.Signal{os.Interrupt}
