module constancia.example/constancia

go 1.19
