package acts

import "os"

// forwarded contains no signals that Windows lacks. The console sends an interrupt to the program too, so aps only has to
// survive it.
var forwarded = []os.Signal{os.Interrupt}
