/* constancia-trusted-list: reads one EU trusted list for constancia, which alone starts it. */
#include "trustlist/trusted_list_xml.h"

int main(void)
{
	trusted_list_run();
}
