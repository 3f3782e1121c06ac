// A stand-in for the two functions of sigsum.org/sigsum-go that witnessctl uses. Not every module proxy has that module.
module sigsum.org/sigsum-go

go 1.26.0
