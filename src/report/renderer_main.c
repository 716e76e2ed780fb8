/* The program constancia-renderer, which draws one report. Only constancia starts it. */
#include "report/renderer_process.h"

int main(int argc, char **argv)
{
	renderer_run(argc > 1 ? argv[1] : "");
}
