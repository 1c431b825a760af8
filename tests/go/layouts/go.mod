module layouts

go 1.18
