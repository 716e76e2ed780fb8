/* What bench/starts holds the program's start against: a program that does nothing. */
int main(void)
{
	return 0;
}
